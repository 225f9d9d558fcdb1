/**
 * The unit of work: makes a plan durable in one transaction, and settles what a lost
 * acknowledgement means. The row that proves a plan is its journal entry: its key is new with every
 * plan of an owner, and the record carries the operation id.
 */
import { AssertionError, StoreConflict, StoreFenced, StoreUnavailable } from "../errors.js";
import type { Key, Lease, StateStore } from "../store/port.js";
import type { Clock } from "./clock.js";
import type { Plan } from "./plan.js";
import { retryBounded } from "./retry.js";

/** The outcome of a commit could not be found out. The owner is to be dropped and read again. */
export class OutcomeUnknown extends StoreUnavailable {
  constructor(cause: unknown) {
    super("tell whether a commit happened", "its evidence could not be read", cause);
  }
}

export interface CommitContext {
  readonly store: StateStore;
  readonly lease: Lease;
  readonly clock: Clock;
  /** The row of this plan that no other plan writes. */
  readonly proof: Key;
}

/**
 * Commits the plan's rows. Returns when they are durable; throws when they certainly are not, and
 * `OutcomeUnknown` when nobody can tell. Publishes nothing.
 * @throws StoreFenced | StoreConflict | StoreUnavailable | StoreSerialization not applied
 * @throws OutcomeUnknown perhaps applied
 */
export async function commitPlan(plan: Plan, context: CommitContext): Promise<void> {
  let isFirstTry = true;
  await retryBounded(
    async () => {
      const mayHaveHappened = !isFirstTry;
      isFirstTry = false;
      try {
        await commitOnce(plan, context, mayHaveHappened);
      } catch (error) {
        // A refusal speaks for this try alone: an earlier one, whose answer was lost, may have landed.
        const isRefused = error instanceof StoreConflict || error instanceof StoreFenced;
        const isOpen = error instanceof StoreUnavailable || (mayHaveHappened && isRefused);
        if (!isOpen || !(await isApplied(plan, context))) throw error;
      }
    },
    {
      clock: context.clock,
      mayRetry: (error) => error instanceof StoreUnavailable && !(error instanceof OutcomeUnknown),
    },
  );
}

async function commitOnce(
  plan: Plan,
  { store, lease, proof }: CommitContext,
  mayHaveHappened: boolean,
): Promise<void> {
  const transaction = await store.begin({ lease, operation: plan.operation });
  try {
    for (const row of plan.rows) {
      if (row.type === "delete") transaction.delete(row.key);
      else transaction.put(row.key, row.value, row.expect);
    }
    if (mayHaveHappened) {
      // An earlier try may still land late; the store then refuses this one instead of doing both.
      const own = plan.rows.find((row) => row.type === "put" && row.key === proof);
      if (own?.type !== "put") throw new AssertionError("a plan writes its own proof");
      transaction.put(proof, own.value, "absent");
    }
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
  await transaction.commit();
}

/** Reads the evidence: ours means done; anything else means certainly not applied. */
async function isApplied(plan: Plan, { store, proof, clock }: CommitContext): Promise<boolean> {
  try {
    const record = await retryBounded(() => store.load(proof), {
      clock,
      mayRetry: (error) => error instanceof StoreUnavailable,
    });
    return record?.operation === plan.operation;
  } catch (error) {
    throw new OutcomeUnknown(error);
  }
}
