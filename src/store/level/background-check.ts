/**
 * Reads the tables that opening did not, once, while the store is in use. LevelDB does not look at
 * the checksums of blocks when it reads them here, so a damaged one could hide rows in silence until
 * somebody audits the store.
 */
import { CorruptionError } from "../../errors.js";
import type { LiveTable } from "./check-files.js";
import { checkTable } from "./check-tables.js";

/** Pause after each table; one of 2 MiB takes some 5 ms. */
const PAUSE_MS = 20;

/**
 * Starts reading. The process may end before it is through.
 * @returns ends it
 */
export function checkInBackground(
  tables: readonly LiveTable[],
  onDamage: (damage: CorruptionError) => void,
): () => void {
  let next = 0;
  let timer: NodeJS.Timeout | undefined;
  const step = (): void => {
    const table = tables[next];
    next += 1;
    if (table === undefined) return;
    try {
      checkTable(table.path, { size: table.size, withData: true, mayBeGone: true });
    } catch (error) {
      // That a file cannot be read just now says nothing about what is in it.
      if (error instanceof CorruptionError) {
        onDamage(error);
        return;
      }
    }
    rest();
  };
  const rest = (): void => {
    timer = setTimeout(step, PAUSE_MS);
    timer.unref();
  };
  if (tables.length > 0) rest();
  return () => clearTimeout(timer);
}
