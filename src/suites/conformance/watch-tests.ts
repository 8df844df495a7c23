import assert from "node:assert/strict";
import type { Watch, WatchKind } from "../../sandbox/sandbox.ts";
import type { ConformanceContext, ConformanceTest } from "./context.ts";
import { runOk, within, writeText } from "./expectations.ts";

/** Watching folders. */
export const watchTests: ConformanceTest[] = [
  {
    name: "watch: created, modified, removed and moved are reported",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const watch = await within(context, "watching", sandbox.watch(folder));
      const events = waiter(context, watch, folder);
      await runOk(context, sandbox, "write-file", `${folder}/file`, "5");
      await events.until("created", "file");
      await sandbox.writeFile(`${folder}/file`, Buffer.from("more"), { how: "append" });
      await events.until("modified", "file");
      await sandbox.move(`${folder}/file`, `${folder}/renamed`);
      await events.until("movedHere", "renamed");
      await sandbox.remove(`${folder}/renamed`);
      await events.until("removed", "renamed");
      watch.close();
      return undefined;
    },
  },
  {
    name: "watch: a folder created during the watch is watched too",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const watch = await within(context, "watching", sandbox.watch(folder, { recursive: true }));
      const events = waiter(context, watch, folder);
      await sandbox.mkdir(`${folder}/new`);
      assert.equal((await events.until("created", "new")).isDirectory, true);
      await sandbox.mkdir(`${folder}/new/deeper`);
      await events.until("created", "new/deeper");
      await runOk(context, sandbox, "write-file", `${folder}/new/deeper/file`, "5");
      await events.until("created", "new/deeper/file");
      watch.close();
      return undefined;
    },
  },
  {
    name: "watch: without recursive, only the children are reported",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.mkdir(`${folder}/sub`);
      const watch = await within(context, "watching", sandbox.watch(folder));
      const events = waiter(context, watch, folder);
      await writeText(sandbox, `${folder}/sub/unseen`, "");
      await runOk(context, sandbox, "write-file", `${folder}/seen`, "1");
      await events.until("created", "seen");
      assert.ok(!events.seen.some((each) => each.includes("unseen")), events.seen.join(", "));
      watch.close();
      return undefined;
    },
  },
  {
    name: "watch: earlier changes are not reported, and close ends the iteration",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/before`, "");
      const watch = await within(context, "watching", sandbox.watch(folder));
      const events = waiter(context, watch, folder);
      await runOk(context, sandbox, "write-file", `${folder}/after`, "1");
      await events.until("created", "after");
      assert.ok(!events.seen.some((each) => each.endsWith("before")), events.seen.join(", "));
      watch.close();
      await within(context, "the end of the iteration", events.drained());
      return undefined;
    },
  },
];

/** Reads a watch until an event arrives. The event's path may be absolute or relative to the watched folder. */
function waiter(context: ConformanceContext, watch: Watch, folder: string) {
  const iterator = watch[Symbol.asyncIterator]();
  const seen: string[] = [];
  return {
    seen,
    async until(kind: WatchKind, path: string) {
      for (;;) {
        const waiting = iterator.next();
        const { done, value } = await within(context, `${kind} of ${path} (seen: ${seen.join(", ")})`, waiting);
        if (done) assert.fail(`the watch ended before ${kind} of ${path}; seen: ${seen.join(", ")}`);
        const name = value.path.startsWith(`${folder}/`) ? value.path.slice(folder.length + 1) : value.path;
        seen.push(`${value.kind} ${name}`);
        if (value.kind === kind && name === path) return value;
      }
    },
    async drained() {
      while (!(await iterator.next()).done);
    },
  };
}
