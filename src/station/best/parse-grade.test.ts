import { expect, test } from "vitest";
import { GRADE_OUTPUT_CHARACTERS_MAX, parseGrade } from "./parse-grade.ts";

const score = (stdout: string) => parseGrade({ exitCode: 0, stdout, stderr: "" }).score;

test("a grade passes with exit code 0 alone", () => {
  expect(parseGrade({ exitCode: 0, stdout: "ok\n", stderr: "warn\n" })).toEqual({
    isPassed: true,
    exitCode: 0,
    score: null,
    text: "ok\nwarn",
  });
  expect(parseGrade({ exitCode: 1, stdout: "score: 1\n", stderr: "" })).toMatchObject({ isPassed: false, score: 1 });
  expect(parseGrade({ exitCode: null, stdout: "", stderr: "" })).toEqual({ isPassed: false, exitCode: null, score: null, text: "" });
});

test.each([
  ["1 failed\nscore: 0.93\n", 0.93],
  ["Score: -2", -2],
  ['{"score": 7, "more": [1]}\n', 7],
  ["score: 0.93\nbye\n", null],
  ["score: 1e9\n", null],
  ["score: NaN\n", null],
  ['{"score": "1"}', null],
  ['{"score": 1e300}', null],
  ["{".repeat(10_000), null],
  ["", null],
])("the score of %j is %j", (stdout, expected) => {
  expect(score(stdout)).toBe(expected);
});

test("a long output keeps its end, and is read in bounded time", () => {
  const { text, score: found } = parseGrade({ exitCode: 0, stdout: `${"x".repeat(10_000_000)}\nscore: 3`, stderr: "" });
  expect(found).toBe(3);
  expect(text).toHaveLength(GRADE_OUTPUT_CHARACTERS_MAX);
});
