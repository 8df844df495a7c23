import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { tarOf } from "../sandbox/tar/testing-tar.ts";

const MIB = 1024 ** 2;

const uploadOf = (bytes: number) => Uint8Array.from(tarOf([{ name: "a", content: "x".repeat(bytes) }]));
const headers = { "content-type": "application/x-tar" };

describe("a disk with only the station's reserve left", () => {
  const { ask, token, base, post } = useServer({ bounds: { diskReserveBytes: Number.MAX_SAFE_INTEGER } });

  test("rejects uploads without leaving anything behind, and still starts runs", async () => {
    const ada = await token("run", { owner: "ada" });
    const refused = await ask("/v1/uploads", { as: ada, method: "POST", headers, body: uploadOf(1000) });
    expect([refused.status, await refused.json()]).toMatchObject([
      507,
      { code: "no_space", hint: expect.stringContaining("diskReserveBytes") },
    ]);
    expect(await readdir(join(base(), "state", "uploads")).catch(() => [])).toEqual([]);
    const backup = await post("/v1/machine/backup", {}, { as: await token("admin") });
    expect([backup.status, await backup.json()]).toMatchObject([507, { code: "no_space", detail: expect.stringContaining("the backup") }]);
    expect((await readdir(join(base(), "state"))).filter((name) => name.startsWith(".backup-"))).toEqual([]);
    const model = join(base(), "model.yaml");
    await writeFile(model, "turns: [{ say: Done. }]\n");
    const started = await post("/v1/runs", { task: "Say so.", model: `scripted:${model}` }, { as: await token("admin", { owner: "bob" }) });
    expect(started.status).toBe(201);
    const { run } = (await started.json()) as { run: string };
    expect(await (await ask(`/v1/runs/${run}/wait`)).json()).toMatchObject({ finish: "done" });
  });
});

describe("an owner who has used up their share of the disk", () => {
  const { ask, token } = useServer({ bounds: { diskBytesPerOwnerMax: 2 * MIB } });

  test("cannot upload until something is removed, while other owners can", async () => {
    const [ada, bob] = [await token("run", { owner: "ada" }), await token("run", { owner: "bob" })];
    const put = async (as: string, bytes: number) => ask("/v1/uploads", { as, method: "POST", headers, body: uploadOf(bytes) });
    const first = await put(ada, MIB);
    expect(first.status).toBe(201);
    const refused = await put(ada, MIB + 1);
    expect([refused.status, await refused.json()]).toMatchObject([507, { detail: expect.stringContaining("ada") }]);
    expect((await put(bob, MIB)).status).toBe(201);
    const { id } = (await first.json()) as { id: string };
    expect((await ask(`/v1/uploads/${id}`, { as: ada, method: "DELETE" })).status).toBe(204);
    expect((await put(ada, MIB + 1)).status).toBe(201);
  });
});
