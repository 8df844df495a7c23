import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";

const { server, token, post, defects } = useServer();

async function withSandbox(): Promise<{ client: Client; sandbox: string }> {
  const client = connect({ url: server().status.url, token: await token("run") });
  const { id } = await client.sandboxes.create();
  return { client, sandbox: id };
}

const bytes = (text: string) => new TextEncoder().encode(text);

test("a process outlives its request, and can be listed, used and forgotten", async () => {
  const { client, sandbox } = await withSandbox();
  const { processes } = client;
  const { ref } = await processes.start(sandbox, { argv: ["cat"], stdin: "pipe", ref: "reader" });
  expect(ref).toBe("reader");
  expect(await processes.list(sandbox)).toContainEqual(expect.objectContaining({ ref, state: "running", command: "cat" }));
  // The same ref is the same process.
  expect(await processes.start(sandbox, { argv: ["cat"], stdin: "pipe", ref })).toMatchObject({ ref });
  const events = processes.outputEvents(sandbox, ref)[Symbol.asyncIterator]();
  const first = events.next();
  await expect.poll(() => server().status.requests).toBe(1);
  await processes.input(sandbox, ref, bytes("typed"));
  // A writer does not cut off a listener.
  expect((await first).value).toEqual({ type: "output", stream: "stdout", offset: 0, encoding: "utf8", text: "typed" });
  await processes.input(sandbox, ref, bytes(" on"));
  expect((await events.next()).value).toMatchObject({ offset: 5, text: " on" });
  await processes.closeInput(sandbox, ref);
  expect((await events.next()).value).toMatchObject({ type: "ended", ended: { kind: "exited", exitCode: 0 } });
  expect((await events.next()).done).toBe(true);
  // The output is stored, and can be read again from any offset.
  expect(await processes.output(sandbox, ref)).toMatchObject({ ended: { kind: "exited" }, stdout: { offset: 0, text: "typed on" } });
  expect(await processes.output(sandbox, ref, { stdoutOffset: 5 })).toMatchObject({ stdout: { offset: 5, text: " on" } });
  await processes.forget(sandbox, ref);
  await expect(processes.output(sandbox, ref)).rejects.toMatchObject({ code: "gone" });
  await expect.poll(() => server().status.requests).toBe(0);
  expect(defects).toEqual([]);
});

test("signals and kills reach a process with and without a listener", async () => {
  const { client, sandbox } = await withSandbox();
  const { processes } = client;
  const { ref } = await processes.start(sandbox, { argv: ["sleep", "1000"] });
  expect(await processes.output(sandbox, ref)).toMatchObject({ ended: null, stdout: { text: "" } });
  await expect(processes.forget(sandbox, ref)).rejects.toMatchObject({ code: "busy" });
  await processes.signal(sandbox, ref, { signal: "SIGTERM" });
  await expect.poll(async () => (await processes.output(sandbox, ref)).ended).toMatchObject({ kind: "signaled", signal: "SIGTERM" });
  const second = await processes.start(sandbox, { argv: ["sleep", "1000"], pty: { cols: 80, rows: 24 } });
  const ended = (async () => {
    for await (const event of processes.outputEvents(sandbox, second.ref)) if (event.type === "ended") return event.ended.kind;
    return "none";
  })();
  await expect.poll(() => server().status.requests).toBe(1);
  await processes.resize(sandbox, second.ref, { cols: 100, rows: 30 });
  await processes.kill(sandbox, second.ref);
  expect(await ended).toBe("killed");
  await expect(processes.signal(sandbox, ref, { signal: "SIGNOPE" })).rejects.toMatchObject({ code: "invalid" });
  await expect(processes.kill(sandbox, "missing")).rejects.toMatchObject({ code: "not_found" });
});

test("the input of a process is limited per request", async () => {
  const { client, sandbox } = await withSandbox();
  const { ref } = await client.processes.start(sandbox, { argv: ["cat"], stdin: "pipe" });
  await expect(client.processes.input(sandbox, ref, new Uint8Array(1024 * 1024 + 1))).rejects.toMatchObject({ code: "too_large" });
  await client.processes.kill(sandbox, ref);
});

test("files can be inspected, moved, archived and watched, and folders created", async () => {
  const { client, sandbox } = await withSandbox();
  const { files } = client;
  await files.makeFolder(sandbox, { path: "/workspace/a/b", parents: true });
  const stop = new AbortController();
  const changes = await files.watch(sandbox, { path: "/workspace/a" }, { signal: stop.signal });
  await files.write(sandbox, { path: "/workspace/a/one" }, bytes("1"));
  const seen: string[] = [];
  for await (const { kind, path } of changes) {
    seen.push(`${kind} ${path}`);
    if (path.endsWith("one")) break;
  }
  expect(seen.at(-1)).toMatch(/ (\/workspace\/a\/)?one$/);
  stop.abort();
  await files.move(sandbox, { from: "/workspace/a/one", to: "/workspace/a/b/two" });
  await expect(files.info(sandbox, { path: "/workspace/a/one" })).rejects.toMatchObject({ code: "not_found" });
  expect(await files.info(sandbox, { path: "/workspace/a/b/two" })).toMatchObject({ kind: "file", sizeBytes: 1 });
  const archive = new Uint8Array(await new Response(await files.pack(sandbox, { path: "/workspace/a", exclude: ["none"] })).arrayBuffer());
  expect(await files.unpack(sandbox, { path: "/workspace" }, archive)).toMatchObject({ bytes: 1 });
  await expect(files.unpack(sandbox, { path: "/workspace", entriesMax: 1 }, archive)).rejects.toMatchObject({ code: "too_large" });
  await expect(files.pack(sandbox, { path: "/nowhere" })).rejects.toMatchObject({ code: "not_found" });
  await expect(files.watch(sandbox, { path: "/nowhere" })).rejects.toMatchObject({ code: "not_found" });
  await expect.poll(() => server().status.requests).toBe(0);
});

test("a path outside its folder is rejected before anything is looked up", async () => {
  const { sandbox } = await withSandbox();
  const as = await token("run");
  for (const path of ["/workspace/../etc/passwd", "relative", "/a\0b"]) {
    expect((await post(`/v1/sandboxes/${sandbox}/files/folders`, { path }, { as })).status, path).toBe(400);
    expect((await post(`/v1/sandboxes/${sandbox}/files/move`, { from: path, to: "/workspace/x" }, { as })).status, path).toBe(400);
  }
});
