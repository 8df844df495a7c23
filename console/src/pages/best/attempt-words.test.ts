import { expect, test } from "vitest";
import { attemptState, budgetText, gradeText } from "./attempt-words.ts";

const grade = { isPassed: true, exitCode: 0, score: null, text: "" };

test("the grade of an attempt takes precedence over how its run ended", () => {
  expect(attemptState({ status: "graded", finish: "max_steps", grade })).toEqual({ word: "passed", tone: "good" });
  expect(attemptState({ status: "graded", finish: "done", grade: { ...grade, isPassed: false } }).word).toBe("not passed");
  expect(attemptState({ status: "ended", finish: "max_steps", grade: null })).toEqual({ word: "max steps", tone: "bad" });
  expect(attemptState({ status: "ended", finish: "done", grade: null }).tone).toBe("good");
  expect(attemptState({ status: "grading", finish: "done", grade: null }).word).toBe("grading");
});

test("a grade shows the score and how the grader exited", () => {
  expect(gradeText(null)).toBe("–");
  expect(gradeText(grade)).toBe("exit 0");
  expect(gradeText({ ...grade, exitCode: null, score: 0.5 })).toBe("0.5, did not exit");
});

test("a budget names its limits", () => {
  expect(budgetText({})).toBe("none");
  expect(budgetText({ costUsd: 2, tokens: 1000 })).toBe("$2, 1000 tokens");
});
