/**
 * The unit of work: makes a plan durable in one transaction, and settles what a lost
 * acknowledgement means. The row that proves a plan is its journal entry: its key is new with every
 * plan of an owner, and the record carries the operation id.
 */
import { AssertionError, StoreConflict, StoreUnavailable } from "../errors.js";
import { OWNER_UNAVAILABLE_TRIES_MAX } from "../limits.js";
import type { Key, Lease, StateStore, StateTransaction } from "../store/port.js";
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
  /** The right to write for the owner, where one process at a time has it. */
  readonly lease?: Lease;
  readonly clock: Clock;
  /** The row of this plan that no other plan writes. */
  readonly proof: Key;
  /**
   * Reads, inside the transaction, what the plan stands on, and may add writes that follow from it.
   * What it reads must not move until the commit. It refuses the plan by throwing.
   */
  readonly check?: (transaction: StateTransaction) => Promise<void>;
  /** Tries of a commit that conflicts, where `check` judges anew each time. Default 1. */
  readonly conflictTriesMax?: number;
}

/**
 * Commits the plan's rows. Returns when they are durable; throws when they certainly are not, and
 * `OutcomeUnknown` when nobody can tell. Publishes nothing.
 * @throws StoreFenced | StoreConflict | StoreUnavailable | StoreSerialization not applied
 * @throws OutcomeUnknown perhaps applied
 */
export async function commitPlan(plan: Plan, context: CommitContext): Promise<void> {
  let isFirstTry = true;
  let conflicts = 0;
  await retryBounded(
    async () => {
      const mayHaveHappened = !isFirstTry;
      isFirstTry = false;
      try {
        await commitOnce(plan, context, mayHaveHappened);
      } catch (error) {
        // A refusal speaks for this try alone: an earlier one, whose answer was lost, may have landed.
        const isOpen = error instanceof StoreUnavailable || mayHaveHappened;
        if (!isOpen || !(await isApplied(plan, context))) throw error;
      }
    },
    {
      clock: context.clock,
      mayRetry: (error) => {
        if (error instanceof StoreConflict) {
          conflicts += 1;
          return conflicts < (context.conflictTriesMax ?? 1);
        }
        return error instanceof StoreUnavailable && !(error instanceof OutcomeUnknown);
      },
      triesMax: OWNER_UNAVAILABLE_TRIES_MAX + (context.conflictTriesMax ?? 1) - 1,
    },
  );
}

async function commitOnce(
  plan: Plan,
  { store, lease, proof, check }: CommitContext,
  mayHaveHappened: boolean,
): Promise<void> {
  const transaction = await store.begin({ lease, operation: plan.operation });
  try {
    await check?.(transaction);
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
    // Nothing was sent, so only the first failure tells anything.
    await transaction.rollback().catch(() => undefined);
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
