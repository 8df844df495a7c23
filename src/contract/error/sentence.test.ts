import { expect, test } from "vitest";
import { CaissonError } from "./error.ts";
import { sentence } from "./sentence.ts";

test.each([
  ["there is no run r_1", "There is no run r_1."],
  ["model: it broke off", "Model: it broke off."],
  ["/tmp/x is not a folder", "/tmp/x is not a folder."],
  ["sb_k3v7q2m5x4ab is gone", "sb_k3v7q2m5x4ab is gone."],
  ["the script said: no!", "The script said: no!"],
])("%s", (fragment, expected) => {
  expect(sentence(fragment)).toBe(expected);
});

test("joins an error's message and hint into one text", () => {
  expect(new CaissonError("not_found", "there is no task").sentences).toBe("There is no task.");
  expect(new CaissonError("not_found", "there is no task", { hint: "Give one." }).sentences).toBe("There is no task. Give one.");
});
