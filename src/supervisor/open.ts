/** Opening the embedded store: the one place of the system where an adapter is chosen. */
import type { StateStore } from "../store/port.js";

/** Loaded on demand: a host with a store of its own does not pay for LevelDB at start. */
export async function openStore(path: string): Promise<StateStore> {
  const { levelStore } = await import("../store/level/level-store.js");
  return levelStore(path);
}
