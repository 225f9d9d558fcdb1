/**
 * The one place where store calls are tried again: bounded, with jittered exponential pauses on the
 * injected clock.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { OWNER_UNAVAILABLE_TRIES_MAX } from "../limits.js";
import type { Clock as HoldfastClock } from "./clock.js";

const FIRST_PAUSE_MS = 10;

/**
 * Runs `attempt` until it succeeds, fails with an error that `mayRetry` does not accept, or the
 * tries are used up; then the last error comes out unchanged.
 */
export async function retryBounded<T>(
  attempt: () => Promise<T>,
  options: {
    readonly clock: HoldfastClock;
    readonly mayRetry: (error: unknown) => boolean;
    readonly triesMax?: number;
  },
): Promise<T> {
  const triesMax = options.triesMax ?? OWNER_UNAVAILABLE_TRIES_MAX;
  // The first try is outside Effect: it nearly always succeeds, and this is the innermost loop.
  try {
    return await attempt();
  } catch (error) {
    if (!options.mayRetry(error) || triesMax <= 1) throw error;
  }
  const schedule = Schedule.jittered(Schedule.exponential(FIRST_PAUSE_MS));
  const again = Effect.tryPromise({ try: attempt, catch: (error) => error }).pipe(
    Effect.retry({ schedule, times: triesMax - 2, while: options.mayRetry }),
    Effect.delay(Duration.millis(FIRST_PAUSE_MS)),
    Effect.provideService(Clock.Clock, effectClock(options.clock)),
    Effect.result,
  );
  const result = await Effect.runPromise(again);
  if (result._tag === "Failure") throw result.failure;
  return result.success;
}

/** Our clock as Effect's, so that its schedules wait on the injected time. */
function effectClock(clock: HoldfastClock): Clock.Clock {
  const nanos = (): bigint => BigInt(clock.nowMs()) * 1_000_000n;
  return {
    currentTimeMillisUnsafe: () => clock.nowMs(),
    currentTimeMillis: Effect.sync(() => clock.nowMs()),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration: Duration.Duration) =>
      Effect.callback<void>((resume) => {
        const cancel = clock.schedule(clock.nowMs() + Duration.toMillis(duration), () =>
          resume(Effect.void),
        );
        return Effect.sync(cancel);
      }),
  };
}
