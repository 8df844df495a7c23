import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type NetworkState, networkStateFile } from "./network-state.ts";

const initial: NetworkState = {
  policy: { mode: "none" },
  secrets: {},
  gateway: null,
  stationAccess: false,
  revoked: [],
  placeholders: {},
  authority: null,
  changedBy: "",
};

describe("the state of a sandbox's network", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "caisson-network-state-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("does not exist before it is written, and leaves few files behind", async () => {
    const file = networkStateFile(folder);
    expect(await file.read()).toBeNull();
    await file.update(() => initial);
    await file.update((state) => ({ ...initial, ...state, revoked: ["A"] }));
    expect((await file.read())?.revoked).toEqual(["A"]);
    for (let change = 0; change < 100; change++) await file.update((state) => ({ ...initial, ...state, changedBy: String(change) }));
    expect(await file.read()).toMatchObject({ revoked: ["A"], changedBy: "99" });
    expect(await readdir(folder)).toHaveLength(64);
  });

  test("keeps all changes that are made at the same time", async () => {
    await networkStateFile(folder).update(() => initial);
    const names = Array.from({ length: 20 }, (_, index) => `S${index}`);
    await Promise.all(
      names.map((name) => networkStateFile(folder).update((state) => ({ ...initial, revoked: [...(state?.revoked ?? []), name] }))),
    );
    expect((await networkStateFile(folder).read())?.revoked.toSorted()).toEqual(names.toSorted());
  });

  test("reaches a watcher at first and with each change, by any process", async () => {
    const file = networkStateFile(folder);
    await file.update(() => initial);
    const seen: string[][] = [];
    const changed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const watching = file.watch((state) => {
      seen.push(state.revoked);
      changed[seen.length - 1]?.resolve();
    });
    await changed[0]?.promise;
    await networkStateFile(folder).update(() => ({ ...initial, revoked: ["A"] }));
    await changed[1]?.promise;
    watching.close();
    expect(seen).toEqual([[], ["A"]]);
  });

  test("reaches a watcher after a damaged file is replaced", async () => {
    const file = networkStateFile(folder);
    await file.update(() => initial);
    const [name = ""] = await readdir(folder);
    await writeFile(join(folder, name), "{");
    const seen = Promise.withResolvers<NetworkState>();
    const watching = file.watch(seen.resolve);
    await expect(file.read()).rejects.toMatchObject({ message: "the state of the sandbox's network is damaged" });
    await writeFile(join(folder, name), JSON.stringify({ ...initial, revoked: ["A"] }));
    expect(await seen.promise).toMatchObject({ revoked: ["A"] });
    watching.close();
  });

  test("reports a removed folder", async () => {
    await rm(folder, { recursive: true });
    await expect(networkStateFile(folder).read()).rejects.toMatchObject({ code: "lost" });
  });

  test("reaches a watcher even if the user's watches are used up", async () => {
    await networkStateFile(folder).update(() => initial);
    const program = `
      import { watch } from "node:fs";
      import { networkStateFile } from ${JSON.stringify(join(import.meta.dirname, "network-state.ts"))};
      try { watch("/"); throw "there are watches left" } catch (error) { if (error.code !== "EMFILE") throw error }
      const staying = setTimeout(() => {}, 60_000);
      const file = networkStateFile(${JSON.stringify(folder)});
      const watching = file.watch(({ revoked }) => {
        if (revoked.length === 0) return void file.update((state) => ({ ...state, revoked: ["A"] }));
        console.log("told");
        watching.close();
        clearTimeout(staying);
      });`;
    const none = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" --input-type=module -e "$1"';
    const argv = ["--user", "--map-root-user", "sh", "-c", none, process.execPath, program];
    const { stdout } = await promisify(execFile)("unshare", argv, { encoding: "utf8" });
    expect(stdout).toBe("told\n");
  });
});
