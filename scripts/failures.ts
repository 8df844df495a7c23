import { readFileSync } from "node:fs";

/** Prints the tests that failed from a report of vitest, each with the beginning of what was wrong. */

const MESSAGE_LINES_MAX = 15;

interface Report {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

const report: Report = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
for (const { name, status, message, assertionResults } of report.testResults) {
  const failures = assertionResults.filter((test) => test.status === "failed");
  for (const { fullName, failureMessages } of failures) print(`${name}: ${fullName}`, failureMessages.join("\n"));
  // What failed outside of any test: an import, a hook.
  if (status === "failed" && failures.length === 0) print(name, message);
}

function print(title: string, message: string): void {
  const lines = message.split("\n").slice(0, MESSAGE_LINES_MAX);
  console.log([title, ...lines.map((line) => `    ${line}`)].join("\n"));
}
