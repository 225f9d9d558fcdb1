/** The operations on one session that the command line knows, with what its help says of them. */
export const operations = {
  retire: "take no new input; inputs that wait are given up, since nothing drains them here",
  reset: "give all inputs up, and take a retired session back into service",
  recycle: "build the lanes again from the stored rows",
  stop: "give all inputs up; `session` takes it into service again",
  unregister: "check that it can leave a supervisor; its inputs stay as they are",
  destroy: "give all inputs up and end the session; its rows stay, and `session` begins it anew",
} as const;

export type Operation = keyof typeof operations;
