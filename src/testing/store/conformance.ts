/**
 * The store conformance suite: what every store behind the port must do, for ours and for those of
 * users. It needs two functions of a test runner and a way to make stores:
 *
 *     storeConformance({ describe, it, make: () => memoryStore() });
 */
import { concurrency } from "./concurrency.js";
import { conflicts } from "./conflicts.js";
import { closing, reopening } from "./ends.js";
import { keysAndValues } from "./keys-and-values.js";
import { leases } from "./leases.js";
import { orderAndPaging } from "./order-and-paging.js";
import type { Case, Chapter, Reopen, StoreUnderTest, TestRunner } from "./suite.js";
import { transactions } from "./transactions.js";

const chapters: readonly Chapter[] = [
  keysAndValues,
  orderAndPaging,
  transactions,
  conflicts,
  leases,
  concurrency,
  closing,
  reopening,
];

export type StoreConformanceOptions = TestRunner & StoreUnderTest;

/**
 * Declares the suite with the runner that is given. Every case gets a new store from `make` and
 * closes it. Chapters that reopen a store are declared only where `reopen` is given.
 */
export function storeConformance(options: StoreConformanceOptions): void {
  for (const { title, cases, needsReopen = false } of chapters) {
    if (needsReopen && options.reopen === undefined) continue;
    options.describe(title, () => {
      for (const [name, body] of Object.entries(cases)) {
        options.it(name, () => runCase(body, options));
      }
    });
  }
}

async function runCase(body: Case, { make, reopen = refuseReopen }: StoreUnderTest): Promise<void> {
  const store = await make();
  try {
    await body(store, { reopen });
  } finally {
    await store.close();
  }
}

const refuseReopen: Reopen = () => {
  throw new Error("this store keeps nothing, so no case may reopen it");
};
