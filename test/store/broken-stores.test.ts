/**
 * The conformance suite finds out stores that break one promise each. A suite that such a store
 * passes would prove nothing; so each of them has to fail at least one of its cases.
 */
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/memory.js";
import type { Key, StateStore, StateTransaction } from "../../src/store/port.js";
import { storeConformance } from "../../src/testing/store/conformance.js";

/** Runs the whole suite on a store and gives the titles of the cases that fail. */
async function failuresOf(make: () => StateStore): Promise<readonly string[]> {
  const cases: { title: string; body: () => Promise<void> }[] = [];
  let chapter = "";
  storeConformance({
    describe: (title, body) => {
      chapter = title;
      body();
    },
    it: (title, body) => cases.push({ title: `${chapter}: ${title}`, body }),
    make: () => heard(make()),
  });
  const failed: string[] = [];
  for (const { title, body } of cases) {
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error("the case did not end")), 2_000).unref();
    });
    await Promise.race([body(), late]).catch(() => failed.push(title));
  }
  return failed;
}

/** A case that has failed does not wait for what it began; those promises fail unheard otherwise. */
function heard<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name) {
      const method: unknown = Reflect.get(object, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => {
        const answer: unknown = method.apply(object, args);
        if (!(answer instanceof Promise)) return answer;
        const result = answer.then((value) => (name === "begin" ? heard(value) : value));
        result.catch(() => {});
        return result;
      };
    },
  });
}

/** A sound store in which some methods are replaced. */
function storeWith(change: (inner: StateStore) => Partial<StateStore>): () => StateStore {
  return () => {
    const inner = memoryStore();
    const sound: StateStore = {
      load: (key) => inner.load(key),
      list: (request) => inner.list(request),
      claim: (owner) => inner.claim(owner),
      begin: (options) => inner.begin(options),
      close: () => inner.close(),
    };
    return { ...sound, ...change(inner) };
  };
}

/** A sound store in whose transactions some methods are replaced. */
function transactionsWith(
  change: (inner: StateTransaction, store: StateStore) => Partial<StateTransaction>,
): () => StateStore {
  return storeWith((store) => ({
    begin: async (options) => {
      const inner = await store.begin(options);
      const sound: StateTransaction = {
        load: (key) => inner.load(key),
        put: (key, value, expect) => inner.put(key, value, expect),
        delete: (key, expect) => inner.delete(key, expect),
        commit: () => inner.commit(),
        rollback: () => inner.rollback(),
      };
      return { ...sound, ...change(inner, store) };
    },
  }));
}

const broken: Readonly<Record<string, () => StateStore>> = {
  "forgets leases": storeWith((inner) => ({ begin: () => inner.begin() })),
  "gives every owner the same epoch": storeWith((inner) => ({
    claim: async (owner) => ({ ...(await inner.claim(owner)), epoch: 1 }),
  })),
  "lets keys run together": storeWith((inner) => ({
    load: (key) => inner.load([key.join("/")]),
    begin: async (options) => {
      const transaction = await inner.begin(options);
      const joined = (key: Key) => [key.join("/")];
      return {
        load: (key) => transaction.load(joined(key)),
        put: (key, value, expect) => transaction.put(joined(key), value, expect),
        delete: (key, expect) => transaction.delete(joined(key), expect),
        commit: () => transaction.commit(),
        rollback: () => transaction.rollback(),
      };
    },
  })),
  "lists what only begins with the prefix's text": storeWith((inner) => ({
    list: async ({ prefix, after, limit }) => {
      const { records } = await inner.list({ prefix: [], after, limit: 256 });
      const text = prefix.join("/");
      return {
        records: records.filter(({ key }) => key.join("/").startsWith(text)).slice(0, limit),
      };
    },
  })),
  "never says that there is a next page": storeWith((inner) => ({
    list: async (request) => ({ records: (await inner.list(request)).records }),
  })),
  "takes pages of any size": storeWith((inner) => ({
    list: (request) => inner.list({ ...request, limit: Math.min(256, request.limit) }),
  })),
  "lists backwards": storeWith((inner) => ({
    list: async (request) => {
      const page = await inner.list(request);
      return { ...page, records: [...page.records].reverse() };
    },
  })),
  "starts a page with the last record of the one before": storeWith((inner) => ({
    list: async ({ prefix, after, limit }) => {
      const page = await inner.list({ prefix, after, limit });
      const last = after && (await inner.load(after));
      return last === undefined
        ? page
        : { ...page, records: [last, ...page.records].slice(0, limit) };
    },
  })),
  "reads what is newest instead of its snapshot": transactionsWith((_, store) => ({
    load: (key) => store.load(key),
  })),
  "does not see its own writes": storeWith((store) => ({
    begin: async (options) => {
      const [reading, writing] = [await store.begin(options), await store.begin(options)];
      return {
        load: (key) => reading.load(key),
        put: (key, value, expect) => writing.put(key, value, expect),
        delete: (key, expect) => writing.delete(key, expect),
        commit: async () => {
          await reading.commit();
          await writing.commit();
        },
        rollback: async () => {
          await reading.rollback();
          await writing.rollback();
        },
      };
    },
  })),
  "does not judge what was read": transactionsWith((_, store) => {
    const view = store.begin();
    return {
      load: async (key) => (await view).load(key),
      rollback: async () => (await view).rollback(),
    };
  }),
  "ignores expectations": transactionsWith((inner) => ({
    put: (key, value) => inner.put(key, value),
    delete: (key) => inner.delete(key),
  })),
  "commits row by row": transactionsWith((inner, store) => {
    const rows: ((transaction: StateTransaction) => void)[] = [];
    return {
      put: (key, value, expect) => void rows.push((t) => t.put(key, value, expect)),
      delete: (key, expect) => void rows.push((t) => t.delete(key, expect)),
      commit: async () => {
        await inner.commit();
        for (const row of rows) {
          const transaction = await store.begin();
          row(transaction);
          await transaction.commit();
        }
      },
    };
  }),
  "acknowledges before it has written": transactionsWith((inner) => ({
    commit: async () => {
      setTimeout(() => inner.commit().catch(() => {}), 5);
    },
  })),
  "writes when it rolls back": transactionsWith((inner) => ({ rollback: () => inner.commit() })),
  "takes values that JSON does not keep": transactionsWith((inner) => ({
    put: (key, value, expect) => {
      const text = JSON.stringify(value) as string | undefined;
      inner.put(key, text === undefined ? null : JSON.parse(text), expect);
    },
  })),
  "gives every record the same revision": storeWith((inner) => ({
    load: async (key) => {
      const record = await inner.load(key);
      return record && { ...record, revision: 1 };
    },
  })),
  "goes on after it was closed": storeWith(() => ({ close: async () => {} })),
};

describe("the conformance suite", () => {
  it("passes the sound store that the others are made of", async () => {
    expect(await failuresOf(storeWith(() => ({})))).toEqual([]);
    expect(await failuresOf(transactionsWith(() => ({})))).toEqual([]);
  }, 60_000);

  it.each(Object.entries(broken))(
    "finds out a store that %s",
    async (_, make) => {
      expect(await failuresOf(make)).not.toEqual([]);
    },
    60_000,
  );
});
