/**
 * One life of the process that the kill test kills: it opens the store, goes on with what earlier
 * lives left, sends the inputs that it is told to send, and says on stdout what it knows, a line at
 * a time and synchronously, so that nothing it has said is lost when it dies.
 */
import { appendFileSync, writeSync } from "node:fs";

/** `store`, `ledger`, `program`, `feed`: inputs by session, `end`: what to do when all is done. */
const orders = JSON.parse(process.argv[2]);

const say = (type, more = {}) => writeSync(1, `${JSON.stringify({ type, ...more })}\n`);

say("started");
const built = new URL("../../dist/src/", import.meta.url);
const { levelStore } = await import(new URL("store/level/level-store.js", built).href);
const { Supervisor } = await import(new URL("supervisor/supervisor.js", built).href);
const { commandExecutor } = await import(
  new URL("sessions/executors/command-executor.js", built).href
);
say("imported");

const store = await levelStore(orders.store);
say("opened");
const supervisor = await Supervisor.open({ store: telling(store) });
const program = commandExecutor(["sh", orders.program, orders.ledger]);
const executor = {
  async apply(request) {
    say("turn", { turnId: request.turnId });
    try {
      return await program.apply(request);
    } finally {
      say("turnOver", { turnId: request.turnId });
    }
  },
};

await Promise.all(Object.entries(orders.feed).map(([id, inputs]) => serve(id, inputs)));
if (orders.end === "stay") {
  say("resting");
  setInterval(() => {}, 2 ** 30);
} else {
  say("closing");
  await supervisor.close({ mode: orders.end });
  await store.close();
  say("closed");
}

async function serve(id, inputs) {
  say("activating", { session: id });
  const session = await supervisor.sessions.open(id, { executor });
  say("attached", { session: id });
  const ends = [];
  for (const input of inputs) {
    const { outcome, inputId, existingId, completion } = await session.accept(input);
    const key = input.idempotencyKey;
    say("acknowledged", { session: id, key, outcome, inputId: existingId ?? inputId });
    ends.push(
      completion.then((end) => {
        // The wait is over when this process closes, and not the input.
        if (end.type === "terminated") return;
        appendFileSync(orders.ledger, `done ${existingId ?? inputId}\n`);
        say("done", { session: id, key, outcome: end.type, result: end.result });
      }),
    );
  }
  if (orders.end !== "cancel-and-drain") await Promise.all(ends);
}

/** Says when a commit begins and ends, and what for. */
function telling(inner) {
  return {
    load: (key) => inner.load(key),
    list: (request) => inner.list(request),
    claim: (owner) => inner.claim(owner),
    close: () => inner.close(),
    async begin(options) {
      const transaction = await inner.begin(options);
      const kinds = new Set();
      return {
        load: (key) => transaction.load(key),
        put: (key, value, expect) => {
          const kind = key[0] === "session" ? (key[2] ?? "session") : key[0];
          kinds.add(kind === "turn" ? `turn ${value.snapshot.value}` : kind);
          transaction.put(key, value, expect);
        },
        delete: (key, expect) => transaction.delete(key, expect),
        rollback: () => transaction.rollback(),
        async commit() {
          const purpose = purposeOf(kinds);
          say("commit", { purpose });
          await transaction.commit();
          say("committed", { purpose });
        },
      };
    },
  };
}

function purposeOf(kinds) {
  if (kinds.has("receipt")) return "boundary";
  if (kinds.has("inputId")) return "admission";
  if (kinds.has("turn staged")) return "staging";
  return "recovery";
}
