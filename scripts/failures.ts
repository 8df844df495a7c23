import { readFileSync } from "node:fs";

/** Prints the failed tests of a vitest report, each with the beginning of its error. */

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
  // A failure outside any test: an import, a hook.
  if (status === "failed" && failures.length === 0) print(name, message);
}

function print(title: string, message: string): void {
  const lines = message.split("\n").slice(0, MESSAGE_LINES_MAX);
  console.log([title, ...lines.map((line) => `    ${line}`)].join("\n"));
}
