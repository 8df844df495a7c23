import { connect as connectTcp } from "node:net";
import { expect } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { all, describeEachWay, type VerbTests } from "../../../test/support/remote-stations.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";

const server = useServer();
const { station } = server;

const requestWith = (config: Parameters<typeof SandboxConfig.parse>[0] = {}) => ({ spec: SandboxConfig.parse(config) });
const text = async (bytes: AsyncIterable<Uint8Array>) => Buffer.concat(await all(bytes)).toString();

const tests: VerbTests<"sandboxes" | "images" | "networks"> = {
  sandboxes: {
    async create(reached) {
      const sandbox = await reached.sandboxes.create(requestWith({ labels: { for: "a test" } }));
      expect(sandbox.info).toMatchObject({ id: sandbox.id, labels: { for: "a test" }, keep: false });
      await sandbox.release();
      expect((await reached.sandboxes.list()).sandboxes).toEqual([]);
      await expect(reached.sandboxes.create({ ...requestWith(), runtime: "none-such" })).rejects.toMatchObject({ code: "invalid" });
    },
    async hold(reached) {
      const sandbox = await reached.sandboxes.create(requestWith({ keep: true, name: "mine" }));
      await sandbox.release();
      const held = await reached.sandboxes.hold("mine");
      await held.release();
      await expect(held.stat("/workspace")).rejects.toMatchObject({ code: "gone" });
      expect((await reached.sandboxes.list()).sandboxes).toHaveLength(1);
      await expect(reached.sandboxes.hold("sb_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    },
    async get(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.sandboxes.get(sandbox.id)).toMatchObject({ id: sandbox.id, runtime: "fake" });
    },
    async list(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect((await reached.sandboxes.list({ sweep: false })).sandboxes.map(({ id }) => id)).toEqual([sandbox.id]);
    },
    async changedFiles(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.sandboxes.changedFiles(sandbox.id)).toBeNull();
    },
    async label(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith({ labels: { for: "a test", team: "walls" } }));
      const { id } = sandbox;
      expect(await reached.sandboxes.label(id, { team: "floors", for: null })).toMatchObject({ id, labels: { team: "floors" } });
      expect((await reached.sandboxes.get(id)).labels).toEqual({ team: "floors" });
      const found = async (label: string) => (await reached.sandboxes.list({ label: [label] })).sandboxes.length;
      expect([await found("team=floors"), await found("for=a test")]).toEqual([1, 0]);
      await expect(reached.sandboxes.label(id, { run: "run_aaaaaaaaaaaa" })).rejects.toMatchObject({ code: "invalid" });
      await expect(reached.sandboxes.label(id, {})).rejects.toMatchObject({ code: "invalid" });
      await expect(reached.sandboxes.label("sb_aaaaaaaaaaaa", { a: "b" })).rejects.toMatchObject({ code: "not_found" });
    },
    async stats(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.sandboxes.stats(sandbox.id)).toHaveProperty("memoryBytes");
    },
    async pause(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      await expect(reached.sandboxes.pause(sandbox.id)).rejects.toMatchObject({ code: "unsupported" });
    },
    async resume(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      await reached.sandboxes.resume(sandbox.id);
    },
    async snapshot(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.sandboxes.snapshot(sandbox.id, { name: "kept" })).toMatchObject({ name: "kept", sandbox: sandbox.id });
    },
    async fork(reached) {
      const sandbox = await reached.sandboxes.create(requestWith({ keep: true }));
      expect((await reached.sandboxes.fork(sandbox.id)).id).not.toBe(sandbox.id);
      await sandbox.destroy();
      expect(await sandbox.closed).toEqual({ why: "destroyed" });
    },
    async remove(reached) {
      const sandbox = await reached.sandboxes.create(requestWith({ keep: true }));
      await reached.sandboxes.remove(sandbox.id);
      await expect(reached.sandboxes.get(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    },
    async sweep(reached) {
      await reached.sandboxes.sweep();
    },
    async snapshots(reached) {
      expect((await reached.sandboxes.snapshots()).snapshots).toEqual([]);
    },
    async removeSnapshot(reached) {
      await expect(reached.sandboxes.removeSnapshot("no-such")).rejects.toMatchObject({ code: "not_found" });
    },
  },
  images: {
    build: "the fake runtime builds none; src/api/routes tests do",
    async list(reached) {
      await expect(reached.images.list()).rejects.toMatchObject({ message: "there is no runtime oci" });
    },
    async get(reached) {
      await expect(reached.images.get("none-such")).rejects.toMatchObject({ message: "there is no runtime oci" });
    },
    async remove(reached) {
      await expect(reached.images.remove("none-such")).rejects.toMatchObject({ message: "there is no runtime oci" });
    },
  },
  networks: {
    async show(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.networks.show(sandbox.id)).toEqual(await station().networks.show(sandbox.id));
    },
    async change(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      await expect(reached.networks.change(sandbox.id, { how: "set", policy: { mode: "none" }, by: "test" })).rejects.toMatchObject({
        code: "unsupported",
      });
    },
    async revoke(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      await expect(reached.networks.revoke(sandbox.id, { secret: "KEY" })).rejects.toMatchObject({ code: "unsupported" });
    },
    async log(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await all(reached.networks.log(sandbox.id))).toEqual([]);
    },
    keepPreview: "the fake runtime serves nothing; the station's own tests do",
    async previews(reached) {
      expect(await reached.networks.previews()).toEqual([]);
    },
    async closePreview(reached) {
      await expect(reached.networks.closePreview("pv_aaaaaaaaaaaa")).rejects.toMatchObject({ name: "CaissonError" });
    },
    preview: "as `forward`, whose connections are the same",
    async forward(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      const refused: unknown[] = [];
      await using forward = await reached.networks.forward(sandbox.id, { port: 81 }, { onRefused: (error) => refused.push(error) });
      const socket = connectTcp(forward.view.listenPort, "127.0.0.1");
      await new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
      expect(refused).toEqual([expect.objectContaining({ code: "unavailable" })]);
    },
    async ports(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      expect(await reached.networks.ports(sandbox.id)).toEqual([]);
    },
    async watchPorts(reached) {
      const sandbox = await reached.sandboxes.create(requestWith());
      const watching = all(reached.networks.watchPorts(sandbox.id, { signal: AbortSignal.timeout(100) }));
      expect(await watching).toEqual([]);
      await sandbox.destroy();
    },
  },
};

describeEachWay(server, tests);

describeEachWay(server, {
  "a held sandbox": {
    async "files go in and out as they are"(reached) {
      await using sandbox = await reached.sandboxes.create(requestWith());
      async function* pieces() {
        yield Buffer.from("from ");
        yield Buffer.alloc(0);
        yield Buffer.from("outside");
      }
      expect(await sandbox.writeFile("/workspace/a/b", pieces(), { parents: true })).toEqual({ bytes: 12 });
      expect(await text(await sandbox.readFile("/workspace/a/b", { offset: 5 }))).toBe("outside");
      const archive = Buffer.concat(await all(await sandbox.tarOut("/workspace/a")));
      expect(await sandbox.tarIn("/workspace", archive)).toMatchObject({ entries: expect.any(Number) });
      await expect(sandbox.readFile("/workspace/none")).rejects.toMatchObject({ code: "not_found" });
    },
  },
});
