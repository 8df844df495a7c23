// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useCaisson } from "./caisson-process.ts";

const { run, base } = useCaisson();

/** Returns the object that a command prints with `--json`. */
async function result(...argv: string[]): Promise<Record<string, unknown>> {
  const { code, text, stderr } = await run([...argv, "--json"]);
  expect(code, `${argv.join(" ")}: ${stderr}`).toBe(0);
  return JSON.parse(text) as Record<string, unknown>;
}

describe("the --json results of commands that change something", () => {
  test("sandbox pause, resume and rm name the sandbox by id", async () => {
    const { id } = await result("sandbox", "create", "--no-workspace", "--name", "box");
    expect(await result("sandbox", "pause", "box")).toEqual({ paused: [id] });
    expect(await result("sandbox", "resume", "box")).toEqual({ resumed: [id] });
    const snapshot = await result("sandbox", "snapshot", "box", "--name", "shot");
    expect(await result("snapshot", "rm", "shot")).toEqual({ removed: ["shot"] });
    expect(snapshot.sandbox).toBe(id);
    expect(await result("sandbox", "rm", "box", "--yes")).toEqual({ removed: [id] });
  });

  test("cp counts files and bytes, and refuses an archive on standard output", async () => {
    const { id } = await result("sandbox", "create", "--no-workspace", "--name", "copies");
    await writeFile(join(base(), "in.txt"), "seven\n");
    expect(await result("cp", "in.txt", "copies:/workspace/in.txt")).toEqual({
      ...{ source: "in.txt", target: "copies:/workspace/in.txt", sandbox: id },
      ...{ files: 1, bytes: 6, skipped: [] },
    });
    expect(await result("cp", "copies:/workspace/in.txt", "out.txt")).toMatchObject({ files: 1, bytes: 6 });
    expect(await readFile(join(base(), "out.txt"), "utf8")).toBe("seven\n");
    const refused = await run(["cp", "copies:/workspace", "-", "--json"]);
    expect(refused.code).toBe(125);
    expect(JSON.parse(refused.text)).toMatchObject({ error: { code: "invalid" } });
    await result("sandbox", "rm", "copies", "--yes");
  });

  test("net allow, deny and set print the new policy", async () => {
    await result("sandbox", "create", "--no-workspace", "--name", "reach", "--network", "a.test");
    const allowed = JSON.stringify(await result("net", "allow", "reach", "b.test"));
    expect(allowed).toContain("a.test");
    expect(allowed).toContain("b.test");
    const { policy } = await result("net", "deny", "reach", "a.test");
    expect(JSON.stringify(policy)).toContain("b.test");
    expect(JSON.stringify(policy)).not.toContain("a.test");
    expect(await result("net", "set", "reach", "none")).toMatchObject({ policy: { mode: "none" } });
    await result("sandbox", "rm", "reach", "--yes");
  });

  test("token, webhook and workflow commands print views and removals", async () => {
    await result("token", "create", "ci");
    expect(await result("token", "rm", "ci")).toEqual({ removed: ["ci"] });
    const { id } = await result("webhook", "create", "chat", "https://chat.test/hooks");
    expect(await result("webhook", "pause", "chat")).toMatchObject({ id, paused: expect.any(String) });
    expect(await result("webhook", "resume", "chat")).toMatchObject({ id, paused: null });
    expect(await result("webhook", "rm", "chat")).toEqual({ removed: ["chat"] });

    const definition = { name: "greeting", steps: [{ name: "say", kind: "set", data: { said: "${'hello'}" } }] };
    await writeFile(join(base(), "workflow.json"), JSON.stringify(definition));
    expect((await run(["workflow", "run", "workflow.json"])).code).toBe(0);
    const [instance] = JSON.parse((await run(["workflow", "ls", "--all", "--json"])).text) as { id: string }[];
    expect(await result("workflow", "rm", instance?.id ?? "")).toEqual({ removed: [instance?.id] });
  });
});
