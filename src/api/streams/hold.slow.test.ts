import { describe, expect, test, vi } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { type Client, connect } from "../../client/connect.ts";
import { block, rawSocket, socketClient, streamPrograms } from "./testing-streams.ts";

const { server, token, station, start } = useServer({ programs: streamPrograms });

const client = async (scope: "read" | "run" | "admin" = "run"): Promise<Client> =>
  connect({ url: server().status.url, token: await token(scope) });
const ids = async () => (await station().sandboxes.list()).sandboxes.map(({ id }) => id);

describe("a held sandbox", () => {
  test("is created for its holder, and removed when the holder releases it", async () => {
    const { streams, sandboxes } = await client();
    const held = await streams.createHeld({ spec: { labels: { of: "a test" } } });
    expect(held.info).toMatchObject({ keep: false, labels: { of: "a test" } });
    expect(await ids()).toEqual([held.info.id]);
    expect((await sandboxes.exec(held.info.id, { argv: ["echo", "there"] })).stdout.text).toBe("there\n");
    await held.release();
    await held.release();
    expect(await ids()).toEqual([]);
    expect(await held.closed).toEqual({ why: "lost" });
  });

  test("counts its changed files over the same connection, even concurrently", async () => {
    const { streams } = socketClient(server());
    const counted = vi.spyOn(station().sandboxes, "changedFiles").mockResolvedValue({ files: 3, isMinimum: false });
    const held = await streams.createHeld({ spec: {} });
    expect(await Promise.all([held.changedFiles?.(), held.changedFiles?.()])).toEqual(Array(2).fill({ files: 3, isMinimum: false }));
    counted.mockRejectedValue(new Error("a defect"));
    expect(await held.changedFiles?.()).toBeNull();
    await held.destroy();
    expect(await held.changedFiles?.()).toBeNull();
    counted.mockRestore();
  });

  test("is removed within seconds when its holder is killed", async () => {
    const raw = rawSocket(server(), "/v1/sandboxes/hold", { as: await token("run") });
    await raw.send({ type: "create", spec: {} });
    const { info } = (await raw.message("held")) as unknown as { info: { id: string } };
    expect(await ids()).toEqual([info.id]);
    raw.ws.terminate();
    await vi.waitFor(async () => expect(await ids()).toEqual([]), { timeout: 60_000 });
  });

  test("exists as long as at least one client holds it", async () => {
    const first = await (await client()).streams.createHeld({ spec: {} });
    const second = await socketClient(server()).streams.holdSandbox(first.info.id);
    await first.release();
    expect(await ids()).toEqual([first.info.id]);
    await second.release();
    expect(await ids()).toEqual([]);
  });

  test("stays on release if it is kept, and can be destroyed for all holders", async () => {
    const { streams } = await client();
    const hold = await streams.createHeld({ spec: { keep: true } });
    await hold.release();
    expect(await ids()).toEqual([hold.info.id]);
    const one = await streams.holdSandbox(hold.info.id);
    const other = await streams.holdSandbox(hold.info.id);
    await one.destroy();
    expect(await one.closed).toEqual({ why: "destroyed" });
    expect(await other.closed).toEqual({ why: "destroyed" });
    expect(await ids()).toEqual([]);
    await other.release();
  });

  test("requires the scope run, and admin for the machine's resources", async () => {
    const { streams } = await client("read");
    await expect(streams.createHeld({ spec: {} })).rejects.toMatchObject({ code: "denied", hint: expect.stringContaining("--scope run") });
    const { streams: mayRun } = await client("run");
    await expect(mayRun.createHeld({ spec: { workspace: { kind: "folder", path: "/etc" } } })).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("a folder of the machine"),
    });
    await expect(mayRun.createHeld({ runtime: "nothing", spec: {} })).rejects.toMatchObject({ code: "denied" });
    await expect(mayRun.holdSandbox("sb_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    expect(await ids()).toEqual([]);
  });

  test("is not left behind if the signal aborts its creation", async () => {
    const { streams } = await client();
    const stop = new AbortController();
    const making = streams.createHeld({ spec: {} }, { signal: stop.signal });
    stop.abort();
    await expect(making).rejects.toMatchObject({ code: "cancelled" });
    expect(await ids()).toEqual([]);
  });

  test.each([true, false])("is not left behind if destroyed during or after its creation (kept: %s)", async (keep) => {
    const raw = rawSocket(server(), "/v1/sandboxes/hold", { as: await token("run") });
    await raw.send({ type: "create", spec: { keep } });
    await raw.send({ type: "destroy" });
    await raw.message("released");
    expect(await ids()).toEqual([]);
    const late = rawSocket(server(), "/v1/sandboxes/hold", { as: await token("run") });
    await late.send({ type: "create", spec: { keep } });
    await late.message("held");
    await late.send({ type: "destroy" });
    await late.message("released");
    expect(await ids()).toEqual([]);
  });

  test("ends with the station, and its holder is asked to reconnect", async () => {
    const raw = rawSocket(server(), "/v1/sandboxes/hold", { as: await token("run") });
    await raw.send({ type: "create", spec: {} });
    await raw.message("held");
    await server().close();
    expect(await raw.closed).toBe(1001);
    expect(await ids()).toEqual([]);
    await using _again = await start();
  });
});

describe("a connection to a port", () => {
  async function echoing() {
    const { streams } = await client();
    const held = await streams.createHeld({ spec: {} });
    const process = await streams.openProcess(held.info.id, { argv: ["echo-server"] });
    const { value } = await process.output[Symbol.asyncIterator]().next();
    return { streams, id: held.info.id, port: Number(Buffer.from((value as { data: Uint8Array }).data).toString()) };
  }
  const read = async (incoming: AsyncIterable<Uint8Array>) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  test("carries bytes both ways, and ends one direction at a time", async () => {
    const { streams, id, port } = await echoing();
    const connection = await streams.connectPort(id, port);
    const answer = read(connection.incoming);
    await connection.write(block);
    await connection.end();
    expect(await answer).toEqual(Buffer.concat([block, Buffer.from("bye")]));
    expect(await connection.closed).toBeNull();
  });

  test("carries large amounts of data at the reader's pace", async () => {
    const { streams, id, port } = await echoing();
    const connection = await streams.connectPort(id, port);
    const writing = (async () => {
      for (let n = 0; n < 256; n += 1) await connection.write(block);
      await connection.end();
    })();
    let bytes = 0;
    for await (const chunk of connection.incoming) bytes += chunk.length;
    await writing;
    expect(bytes).toBe(256 * block.length + 3);
  });

  test("can be reset from either side", async () => {
    const { streams, id, port } = await echoing();
    const theirs = await streams.connectPort(id, port);
    await theirs.write(Buffer.from("quit"));
    await expect(read(theirs.incoming)).rejects.toMatchObject({ code: "lost" });
    const ours = await streams.connectPort(id, port);
    ours.reset();
    expect(await ours.closed).toBeNull();
    await expect(ours.write(Buffer.from("x"))).rejects.toMatchObject({ code: "gone" });
  });

  test("reports that nothing listens on the port", async () => {
    const { streams, id } = await echoing();
    await expect(streams.connectPort(id, 9)).rejects.toMatchObject({ code: "unavailable" });
    await expect(streams.connectPort(id, 70_000)).rejects.toMatchObject({ code: "invalid" });
  });
});
