import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { WorkspaceAccess } from "../../contract/sandbox/sandbox-fields.ts";
import { sharedFolders } from "../../sandbox/shared-folders.ts";
import { checkedMounts, guardWritable, hideCredentials } from "./guard-workspace.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-guard-")));
  for (const [path, text] of Object.entries({
    "home/project/.env": "A=1",
    "home/data/.env": "B=2",
    "home/data/.git/config": "",
    "home/data/.git/hooks/x": "",
    "home/data/.envrc": "",
    "home/.ssh/id_rsa": "",
    "home/.state/log.db": "",
  })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const capabilities = { paths: true, isolation: 1, reasons: {} };
const places = () => ({ home: join(folder, "home"), stateDir: join(folder, "home/.state") });
const mountOf = (path: string, access: WorkspaceAccess = "ro") => ({ path: join(folder, path), target: "/mnt/data", access });
const configOf = (access: WorkspaceAccess = "ro") =>
  SandboxConfig.parse({
    workspace: { kind: "folder", path: join(folder, "home/project") },
    mounts: [mountOf("home/data", access)],
  });

describe("guards for mounts", () => {
  test("hide likely credentials in every folder, and report their paths inside", async () => {
    const notices: string[] = [];
    const config = configOf();
    const rules = { hide: [], show: [] };
    const hidden = await hideCredentials(config, {
      folders: sharedFolders(config),
      rules,
      capabilities,
      notice: (text) => notices.push(text),
    });
    expect(hidden.deniedPaths).toEqual(["/workspace/.env", "/mnt/data/.env"]);
    expect(notices).toEqual([
      "1 file that looks like a credential is hidden inside: .env (--show NAME shows it)",
      "1 file that looks like a credential is hidden inside: /mnt/data/.env (--show NAME shows it)",
    ]);
  });

  test("make files that run code outside read-only in read-write mounts", () => {
    const expected = ["/mnt/data/.envrc", "/mnt/data/.git/config", "/mnt/data/.git/hooks"];
    expect(guardWritable(configOf("rw"), { places: places(), capabilities }).readOnlyPaths).toEqual(expected);
    expect(guardWritable(configOf("overlay"), { places: places(), capabilities }).readOnlyPaths).toEqual([]);
    expect(() => guardWritable(configOf("rw"), { places: places(), capabilities: { ...capabilities, paths: false } })).toThrow(
      expect.objectContaining({ code: "unsupported" }),
    );
  });

  test.each([
    ["home", "your home folder"],
    ["home/.ssh", ".ssh is where keys are kept"],
    ["home/.state", "keeps its own state"],
    [".", "it contains your home folder"],
  ])("reject %s, even though it is named", (path, why) => {
    expect(() => checkedMounts([mountOf(path)], places())).toThrow(why);
  });

  test("reject the machine's root and its settings", () => {
    for (const path of ["/", "/etc"])
      expect(() => checkedMounts([{ path, target: "/mnt/x", access: "ro" }], places())).toThrow(`refusing to mount ${path}`);
    expect(checkedMounts([mountOf("home/data")], places())).toEqual([mountOf("home/data")]);
  });
});
