/**
 * What a command says: results on stdout, as text for people or as one JSON value a line; faults on
 * stderr, one line each. Writing waits while the reader is slow, and a reader that has gone ends the
 * command in the same way as a signal.
 */
import { once } from "node:events";
import type { Writable } from "node:stream";
import { escapeControls, oneLine } from "./plain-text.js";

export class Output {
  /** One JSON value a line on stdout, instead of text. */
  isJson: boolean;
  /** Aborted when nobody reads stdout any more. */
  readonly closed: AbortSignal;
  readonly #stdout: Writable;
  readonly #stderr: Writable;
  readonly #closing = new AbortController();
  /** Clears what is drawn on the terminal before something is printed. */
  beforePrint: () => void = () => {};

  constructor(options: {
    readonly isJson: boolean;
    readonly stdout: Writable;
    readonly stderr: Writable;
  }) {
    this.isJson = options.isJson;
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
    this.closed = this.#closing.signal;
    this.#stdout.on("error", () => this.#closing.abort());
    // Faults that nobody reads are lost; there is nobody to tell.
    this.#stderr.on("error", () => {});
  }

  /** Prints the value as JSON, or the text. The text may hold nothing unescaped from outside. */
  async print(value: unknown, text: string | undefined): Promise<void> {
    // In JSON the same characters are escaped; it stays the same value, and harmless to look at.
    const line = this.isJson ? escapeControls(JSON.stringify(value)) : text;
    if (line === undefined || this.closed.aborted) return;
    this.beforePrint();
    if (this.#stdout.write(`${line}\n`)) return;
    await once(this.#stdout, "drain", { signal: this.closed }).catch(() => undefined);
  }

  /** One line on stderr. The stack only where HOLDFAST_DEBUG is 1. */
  fault(error: unknown, where = ""): void {
    this.beforePrint();
    const message = error instanceof Error ? error.message : String(error);
    this.#stderr.write(`holdfast: ${where}${oneLine(message)}\n`);
    if (process.env.HOLDFAST_DEBUG === "1" && error instanceof Error) {
      this.#stderr.write(`${error.stack}\n`);
    }
  }

  /** A remark on stderr for people; nothing that a program needs. */
  remark(text: string): void {
    if (this.isJson) return;
    this.beforePrint();
    this.#stderr.write(`${oneLine(text)}\n`);
  }

  /** Resolves when everything printed has left this process, or cannot leave it. */
  async flush(): Promise<void> {
    for (const stream of [this.#stdout, this.#stderr]) {
      if (stream.writableLength === 0 || stream.destroyed) continue;
      await new Promise<void>((resolve) => {
        stream.write("", () => resolve());
      });
    }
  }
}
