import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decodeFields, shapes } from "../../src/sandbox/guest/fields.ts";
import { type Exchange, refusal, startWorker, type TestWorker, temporaryFolder } from "./files-client.ts";

const kinds = ["", "created", "modified", "removed", "moved", "attributes", "overflow"];

/** Opens a watch; `until` returns the events up to and including one, as "kind path" relative to the folder. */
async function watch(worker: TestWorker, path: string, options: { recursive?: boolean } = {}) {
  const exchange: Exchange = worker.open("WATCH", { path, ...options });
  expect((await exchange.next()).type).toBe("OK");
  return {
    exchange,
    async until(last: string): Promise<string[]> {
      const seen: string[] = [];
      for (;;) {
        const event = decodeFields("WATCH_EVENT", shapes.WATCH_EVENT, (await exchange.next()).payload);
        expect(event.path.startsWith(path)).toBe(true);
        seen.push(`${kinds[event.kind]} ${event.path.slice(path.length + 1)}${event.isDirectory ? "/" : ""}`);
        if (seen.at(-1) === last) return seen;
      }
    },
  };
}

describe("watch", () => {
  test("reports created, changed, moved and removed entries of one folder", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    mkdirSync(at("sub"));
    const { until, exchange } = await watch(worker, folder.path);
    writeFileSync(at("a"), "");
    appendFileSync(at("a"), "x");
    chmodSync(at("a"), 0o600);
    renameSync(at("a"), at("b"));
    unlinkSync(at("b"));
    mkdirSync(at("d"));
    writeFileSync(at("sub/unseen"), "");
    writeFileSync(at("last"), "");
    expect(await until("created last")).toEqual([
      "created a",
      "modified a",
      "attributes a",
      "removed a",
      "moved b",
      "removed b",
      "created d/",
      "created last",
    ]);
    exchange.cancel();
    expect(await refusal(exchange.next())).toBe("gone");
    expect((await worker.stat(at("last"))).kind).toBe(1);
  });

  test("adds new folders recursively, and reports their content once", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    mkdirSync(at("there/deep"), { recursive: true });
    const { until } = await watch(worker, folder.path, { recursive: true });
    writeFileSync(at("there/deep/f"), "");
    expect(await until("created there/deep/f")).toEqual(["created there/deep/f"]);
    execFileSync("sh", ["-c", `cd "$0" && mkdir -p n/e/w && : > n/e/w/file && : > n/other && : > mark`, folder.path]);
    const events = await until("created mark");
    expect(events.toSorted()).toEqual([
      "created mark",
      "created n/",
      "created n/e/",
      "created n/e/w/",
      "created n/e/w/file",
      "created n/other",
    ]);
    appendFileSync(at("n/e/w/file"), "changed");
    expect(await until("modified n/e/w/file")).toEqual(["modified n/e/w/file"]);
    unlinkSync(at("n/e/w/file"));
    writeFileSync(at("n/e/w/file"), "");
    expect((await until("created n/e/w/file")).filter((event) => event.startsWith("created"))).toHaveLength(1);
  });

  test("follows a folder that is moved in, within and out", async () => {
    using folder = temporaryFolder();
    using elsewhere = temporaryFolder();
    await using worker = startWorker();
    const at = (name: string) => join(folder.path, name);
    mkdirSync(join(elsewhere.path, "m/x"), { recursive: true });
    writeFileSync(join(elsewhere.path, "m/x/f"), "");
    const { until } = await watch(worker, folder.path, { recursive: true });
    renameSync(join(elsewhere.path, "m"), at("m"));
    expect(await until("created m/x/f")).toEqual(["moved m/", "created m/x/", "created m/x/f"]);
    renameSync(at("m"), at("k"));
    expect(await until("created k/x/f")).toEqual(["removed m/", "moved k/", "created k/x/", "created k/x/f"]);
    appendFileSync(at("k/x/f"), "new");
    expect(await until("modified k/x/f")).toEqual(["modified k/x/f"]);
    renameSync(at("k"), join(elsewhere.path, "k"));
    writeFileSync(join(elsewhere.path, "k/x/f"), "unseen");
    writeFileSync(at("last"), "");
    expect(await until("created last")).toEqual(["removed k/", "created last"]);
  });

  test("never follows a link into another tree", async () => {
    using folder = temporaryFolder();
    using elsewhere = temporaryFolder();
    await using worker = startWorker();
    symlinkSync(elsewhere.path, join(folder.path, "link"));
    const { until } = await watch(worker, folder.path, { recursive: true });
    writeFileSync(join(elsewhere.path, "unseen"), "");
    symlinkSync(elsewhere.path, join(folder.path, "second"));
    writeFileSync(join(elsewhere.path, "unseen"), "x");
    writeFileSync(join(folder.path, "last"), "");
    expect(await until("created last")).toEqual(["created second", "created last"]);
  });

  test("watches a single file until its end, and refuses invalid paths", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const path = join(folder.path, "f");
    writeFileSync(path, "");
    expect(await refusal(worker.open("WATCH", { path: join(folder.path, "nothing") }).next())).toBe("not_found");
    const { until, exchange } = await watch(worker, path);
    appendFileSync(path, "x");
    expect(await until("modified ")).toEqual(["modified "]);
    unlinkSync(path);
    expect(await until("removed ")).toContain("removed ");
    exchange.cancel();
    expect(await refusal(exchange.next())).toBe("gone");
    const second = await watch(worker, folder.path, { recursive: true });
    rmSync(folder.path, { recursive: true });
    expect(await second.until("removed /")).toContain("removed /");
  });

  test("reports a queue overflow, and continues", async () => {
    using folder = temporaryFolder();
    await using worker = startWorker();
    const { until } = await watch(worker, folder.path, { recursive: true });
    worker.process.kill("SIGSTOP");
    execFileSync(process.execPath, [
      "-e",
      `const fs=require("fs");process.chdir(${JSON.stringify(folder.path)});for(let i=0;i<9000;i++){fs.writeFileSync("c","");fs.unlinkSync("c")}`,
    ]);
    mkdirSync(join(folder.path, "late"));
    worker.process.kill("SIGCONT");
    await until("overflow /");
    // The folder whose event was lost is watched anyway.
    const file = join(folder.path, "late/f");
    writeFileSync(file, "");
    expect((await until("created late/f")).at(-1)).toBe("created late/f");
  });
});
