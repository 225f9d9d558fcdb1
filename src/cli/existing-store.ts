/** A store to look at: it is opened only where there is one, and closed in every case. */
import { existsSync } from "node:fs";
import { identityPath, levelPath } from "../store/level/layout.js";
import type { StateStore } from "../store/port.js";
import { MissingError } from "./cli-errors.js";
import { shellWord } from "./plain-text.js";

export const DEFAULT_STORE = "./.holdfast";

/** The words that name this store in a command that somebody is told to type. */
export function storeWords(directory: string): string {
  return directory === DEFAULT_STORE ? "" : ` --store ${shellWord(directory)}`;
}

/** @throws MissingError nothing is stored there, and nothing was made */
export async function withExistingStore<T>(
  directory: string,
  work: (store: StateStore) => Promise<T>,
): Promise<T> {
  requireStoreAt(directory);
  const { levelStore } = await import("../store/level/level-store.js");
  const store = await levelStore(directory, { create: false });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Half a store is not a missing one: what is wrong with it is for the store room to say. */
export function requireStoreAt(directory: string): void {
  if (existsSync(identityPath(directory)) || existsSync(levelPath(directory))) return;
  throw new MissingError("store", directory);
}
