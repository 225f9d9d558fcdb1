/**
 * A fair lock for one owner. Plans of one owner are made and committed one at a time; whoever
 * waits gets the lock in the order of asking.
 */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** True when nobody holds the lock or waits for it. */
  get isFree(): boolean {
    return this.#waiting === 0;
  }

  /** Runs `task` alone. Its failure is the caller's; the next in line runs all the same. */
  run<T>(task: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#tail.then(task).finally(() => {
      this.#waiting -= 1;
    });
    this.#tail = result.catch(() => undefined);
    return result;
  }
}
