import { describe, expect, test } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../../contract/sandbox/sandbox.ts";
import { configOfKind, createKindChoice, kindOf, usualKind, type WaitingKind } from "./waiting-kind.ts";

const kind = (input: SandboxConfigInput): WaitingKind => {
  const found = kindOf(SandboxConfig.parse(input));
  if (found === null) throw new Error("only a new sandbox can serve it");
  return found;
};
const [usual, root] = [usualKind(), kind({ allowRoot: true })];
const choiceAfter = (...requests: readonly WaitingKind[]) => {
  const choice = createKindChoice(usual);
  for (const request of requests) choice.note(request);
  return choice;
};

describe("the kind of a waiting sandbox", () => {
  test("does not depend on what can still be changed", () => {
    const workspace = { kind: "folder", path: "/x", layer: "/y" } as const;
    expect(kind({ workspace, template: { kind: "image", reference: "x" }, deniedPaths: ["/a"], limits: { pids: 9 }, keep: true })).toEqual(
      usual,
    );
    expect(kind({ mounts: [{ path: "/x", target: "/mnt/x" }] })).toEqual(usual);
  });

  test("is that of the sandbox which waits for it", () => {
    for (const each of [usual, root, kind({ network: { mode: "open", transparent: true } }), kind({ tmpBytes: 2 ** 21 })])
      expect(kindOf(configOfKind(each))).toEqual(each);
  });

  test("is null for a config that writes to the host or limits the disk", () => {
    for (const input of [{ workspace: { kind: "folder", path: "/x", access: "rw" } }, { limits: { diskBytes: 2 ** 21 } }] as const)
      expect(kindOf(SandboxConfig.parse(input))).toBeNull();
  });
});

describe("what waits", () => {
  test("is the usual kind before the first request", () => {
    expect(choiceAfter().wanted(2, [])).toEqual([usual, usual]);
  });

  test("includes the kind of the latest request if there is room for two", () => {
    expect(choiceAfter(...Array(20).fill(usual), root).wanted(2, [usual, usual])).toEqual([usual, root]);
    expect(choiceAfter(...Array(20).fill(root), usual).wanted(2, [root, root])).toEqual([root, usual]);
  });

  test("follows the newest requests, whatever was wanted long ago", () => {
    expect(choiceAfter(...Array(40).fill(usual), ...Array(20).fill(root)).wanted(3, [])).toEqual([root, root, root]);
  });

  test("does not change with every request if there is room for one", () => {
    const choice = choiceAfter(usual, root, usual);
    expect(choice.wanted(1, [usual])).toEqual([usual]);
    choice.note(root);
    expect(choice.wanted(1, [usual])).toEqual([usual]);
    for (let count = 0; count < 3; count++) choice.note(root);
    expect(choice.wanted(1, [usual])).toEqual([root]);
  });
});
