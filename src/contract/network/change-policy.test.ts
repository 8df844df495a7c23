import { describe, expect, test } from "vitest";
import { parsePolicy, showPolicy } from "../network/network-text.ts";
import { allowMore, denySome } from "./change-policy.ts";

const policy = (text: string) => parsePolicy(text.split(" "));

describe("changing a policy", () => {
  test.each([
    ["none", "a.example", "a.example"],
    ["a.example", "b.example", "a.example,b.example"],
    ["a.example", "a.example", "a.example"],
    ["a.example", "none", "a.example"],
    ["a.example registries:npm", "registries:npm+pypi", "a.example registries:npm+pypi"],
    ["a.example", "open", "open a.example"],
    ["open", "a.example", "open a.example"],
  ])("%s plus %s is %s", (before, more, after) => {
    expect(showPolicy(allowMore(policy(before), policy(more)))).toBe(showPolicy(policy(after)));
  });

  test.each([
    ["a.example,b.example", "a.example", "b.example"],
    ["a.example:8443,b.example", "a.example", "b.example"],
    ["a.example registries:npm+pypi", "registries:npm", "a.example registries:pypi"],
    ["none", "a.example", "none"],
    ["a.example", "none", "a.example"],
  ])("%s minus %s is %s", (before, less, after) => {
    expect(showPolicy(denySome(policy(before), policy(less)))).toBe(showPolicy(policy(after)));
  });
});
