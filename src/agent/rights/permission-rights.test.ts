import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { permissionFor } from "../permissions.ts";
import { canMatchTheSame, wideningRules } from "./permission-rights.ts";
import { pattern, permission, piece } from "./testing-rights.ts";

describe("permission rules", () => {
  const strictness = { allow: 0, ask: 1, deny: 2 };

  test("never loosen a default unless they count as rights", () => {
    fc.assert(
      fc.property(
        fc.dictionary(pattern, permission, { maxKeys: 6 }),
        fc.array(fc.array(piece, { maxLength: 5 }), { maxLength: 6 }),
        (rules, texts) => {
          const widening = new Set(wideningRules(rules).map(([each]) => each));
          const own = Object.fromEntries(Object.entries(rules).filter(([each]) => !widening.has(each)));
          const subjects = [...texts.map((pieces) => pieces.join("")), ...Object.keys(rules)];
          const wider = subjects
            .flatMap((each) => [each, each.replaceAll("*", ""), each.replaceAll("*", "git push")])
            .filter(
              (each) => strictness[permissionFor(each, { own }).permission] < strictness[permissionFor(each, { own: {} }).permission],
            );
          expect(wider, JSON.stringify(own)).toEqual([]);
        },
      ),
      { numRuns: tries(300) },
    );
  });

  test.each([
    ["a*", "*b", true],
    ["a*", "b*", false],
    ["", "*", true],
    ["bash:*push*", "bash:git push*", true],
    ["bash:got*", "bash:git push*", false],
    ["bash:g*t tag", "bash:git push*", true],
    ["*", "anything", true],
    ["abc", "abc", true],
    ["ab", "abc", false],
  ])("%j and %j can match the same text: %j", (left, right, expected) => {
    expect([canMatchTheSame(left, right), canMatchTheSame(right, left)]).toEqual([expected, expected]);
  });
});
