import { expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { forModels } from "./model-hints.ts";

test.each([
  ["`caisson sandbox ls` lists them.", "list_sandboxes lists them."],
  ["`caisson ps --all` lists them.", "list_runs lists them."],
  ["Give --model PROVIDER/MODEL. Or leave it out.", "Or leave it out."],
  ["Wait for it, or stop it: caisson stop run_x.", undefined],
  ["Ask the person to start `caisson mcp` with --network.", "Ask the person to start `caisson mcp` with --network."],
  ["Read it in parts with read_file.", "Read it in parts with read_file."],
])("%s", (hint, expected) => {
  expect(forModels(new CaissonError("not_found", "no such sandbox", { hint })).hint).toBe(expected);
});
