import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const shared = {
  pool: "forks" as const,
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** What goes by a `World` runs again with a LevelDB as the world's store. */
const onEveryStore = [
  "test/sessions/*.test.ts",
  "test/supervisor/*.test.ts",
  "test/crash/every-commit.test.ts",
];

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    projects: [
      { test: { ...shared, name: "memory", include: ["test/**/*.test.ts"] } },
      {
        test: {
          ...shared,
          name: "level",
          include: onEveryStore,
          // Thousands of worlds each: their histories are of the session, not of its store.
          exclude: ["test/sessions/histories.test.ts", "test/sessions/schedules.test.ts"],
          env: { HOLDFAST_TEST_STORE: "level" },
        },
      },
    ],
  },
});
