/** Signals of the operating system, as a wish to end well; a second one ends at once. */
import { type ExitCode, exitCodes } from "./exit-codes.js";

const codes: Readonly<Record<"SIGINT" | "SIGTERM" | "SIGHUP", ExitCode>> = {
  SIGHUP: exitCodes.hungUp,
  SIGINT: exitCodes.interrupted,
  SIGTERM: exitCodes.terminated,
};

export interface Signals {
  /** Aborted by the first signal. */
  readonly stop: AbortSignal;
  /** The exit code that goes with it, once there was one. */
  code(): ExitCode | undefined;
}

export function listenForSignals(): Signals {
  const controller = new AbortController();
  let code: ExitCode | undefined;
  for (const [name, codeOfSignal] of Object.entries(codes)) {
    process.on(name, () => {
      if (code !== undefined) process.exit(codeOfSignal);
      code = codeOfSignal;
      controller.abort();
    });
  }
  return { stop: controller.signal, code: () => code };
}
