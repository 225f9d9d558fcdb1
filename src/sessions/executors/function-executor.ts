/** An executor from a function. */
import type { Executor, TurnRequest, TurnResult } from "./executor.js";

/** The function may answer nothing at all; then the turn completes without a result. */
export function functionExecutor(
  apply: (request: TurnRequest) => TurnResult | undefined | Promise<TurnResult | undefined>,
): Executor {
  return { apply: async (request) => (await apply(request)) ?? {} };
}
