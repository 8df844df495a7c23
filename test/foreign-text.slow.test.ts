import { describe, test } from "vitest";
import { patchLines } from "../console/src/pages/run/changes/patch-lines.ts";
import { ansiSpans } from "../console/src/parts/ansi-spans.ts";
import { visibleLines, visibleTitle } from "../console/src/parts/visible-text.ts";
import { parseAgentFile } from "../src/agent/file/parse-agent-file.ts";
import { permissionFor } from "../src/agent/permissions.ts";
import { canMatchTheSame } from "../src/agent/rights/permission-rights.ts";
import { shellCommands } from "../src/agent/shell-commands.ts";
import { htmlText } from "../src/agent/tools/html-text.ts";
import { mcpResultText } from "../src/agent/tools/mcp-content.ts";
import { parsePatch } from "../src/agent/tools/patch-format.ts";
import { conditionsOf, names, partOf } from "../src/api/conditions.ts";
import { forModels } from "../src/api/mcp/model-hints.ts";
import { createRedactor } from "../src/api/observe/log-line.ts";
import { cutToWidth, displayWidth, plainText, visibleText, wrapText } from "../src/cli/terminal/plain-text.ts";
import { auditName, auditOrigin, auditPath } from "../src/contract/audit/audit-text.ts";
import { CaissonError } from "../src/contract/error/error.ts";
import { parseImageReference } from "../src/contract/image/image-reference.ts";
import { parseAgentReference, parseShipRemote } from "../src/contract/machine/machine-names.ts";
import { parseModelName } from "../src/contract/model/model-name.ts";
import { parseRule, parseSecret } from "../src/contract/network/network-text.ts";
import { parseOciRuntime } from "../src/contract/sandbox/runtime-names.ts";
import { parseGitPlace } from "../src/contract/session/git-address.ts";
import { visible } from "../src/contract/visible-text.ts";
import { compileGlob } from "../src/lib/glob.ts";
import { bytesFrom, durationFrom } from "../src/lib/quantity.ts";
import { parseTraceparent } from "../src/lib/trace-ids.ts";
import { matchesStars } from "../src/lib/wildcards.ts";
import { parseTargetHost } from "../src/network/address/target-host.ts";
import { parseBody } from "../src/network/gateway/request-body.ts";
import { parseRequestHead, parseResponseHead } from "../src/network/http/head.ts";
import { header } from "../src/network/http/headers.ts";
import { integrityDigest } from "../src/network/mirror/digest-list.ts";
import { rewriteSimpleHtml } from "../src/network/mirror/registries/simple-page.ts";
import { createPreviewRewrite } from "../src/network/preview/preview-rewrite.ts";
import { createAnswerRedactor } from "../src/network/secrets/answer-redactor.ts";
import { createRedactor as createSecretRedactor } from "../src/network/secrets/redactor.ts";
import { testCounts } from "../src/station/guardian/call-fingerprint.ts";
import { plainJson } from "../src/station/inside/plain-json.ts";
import { parseCursor } from "../src/station/pages.ts";
import { slugOf } from "../src/station/pull-requests/branch-name.ts";
import { runsTests } from "../src/station/pull-requests/test-evidence.ts";
import { earsForm } from "../src/station/specs/ears.ts";
import { judgeOutput } from "../src/station/specs/phase-output.ts";
import { expressionProblem, expressionsIn } from "../src/workflow/expression.ts";
import { submoduleAddress, withoutSecretOf } from "../src/workspace/git/address.ts";
import { parseSubmodules } from "../src/workspace/git/submodules.ts";
import { readAdvertisedRefs } from "../src/workspace/git/wire/advertised-refs.ts";
import { FLUSH, pktLine } from "../src/workspace/git/wire/pkt-line.ts";
import { readPushReport } from "../src/workspace/git/wire/push-request.ts";
import { hooksPathIn } from "../src/workspace/hook-folders.ts";
import { parseIgnorePatterns } from "../src/workspace/ignore-patterns.ts";
import { hashLines } from "../src/workspace/line-hashes.ts";
import { whyHeldBack } from "../src/workspace/protected-files.ts";
import { diffText, newDiffBudget } from "../src/workspace/text-diff.ts";
import { expectLinearCost, type Read } from "./support/growing-cost.ts";

const page = { page: new URL("https://example.com/simple/a/"), places: {}, shown: {} };
const requestHead = { method: "GET", target: "/", version: "1.1" as const, headers: [] };
const responseHead = { version: "1.1" as const, status: 200, reason: "", headers: [] };
const rewrite = createPreviewRewrite({ token: "a".repeat(26), port: 80 });
/** Includes secrets of one repeated character, which a text of that character contains at every offset. */
const values = ["a", "A1", "0", " ", "/", "<"].map((piece, index) => ({ name: `S${index}`, value: piece.repeat(100) }));
const secrets = createSecretRedactor({ version: () => 1, values: () => values });
const answers = createAnswerRedactor(values.map(({ value }) => ({ value, placeholder: "x".repeat(value.length) })));

/** Everything that reads text from callers, models, repositories, agents and other stations. Add new parsers here. */
const parsers: Readonly<Record<string, Read>> = {
  "a line of a .gitignore": parseIgnorePatterns,
  "a .gitignore of many lines": (text) => parseIgnorePatterns(text.replaceAll(/(.{40})/g, "$1\n")),
  "a name that wildcards match": (text) => matchesStars("*a*ab*b*", text),
  "a permission pattern": (text) => canMatchTheSame(text.slice(0, 2000), "bash:git push*"),
  "a path that may be protected": whyHeldBack,
  // The YAML library is slow, so it gets a tenth of the text.
  "an agent file": (text) => {
    const short = text.slice(0, text.length / 10);
    return parseAgentFile("x.prompt", `---\nname: x\ndescription: ${short}\n---\n${text}`);
  },
  "a line of shell": shellCommands,
  "a line of shell that may run tests": (text) => runsTests(text),
  "what tests printed": testCounts,
  "a page of HTML": htmlText,
  "a patch": (text) => parsePatch(`*** Begin Patch\n*** Update File: a\n@@\n ${text}\n-${text}\n+x\n*** End Patch`),
  "a unified diff": (text) => parsePatch(`--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@ ${text}\n-${text}\n+x\n`),
  "the lines of a diff": (text) => diffText(Buffer.from(`${text}\n`), Buffer.from(`x${text}\n`), newDiffBudget()),
  "lines that are compared for renames": (text) => hashLines(Buffer.from(text)),
  "a line of the station log": createRedactor(["sk-secret", "aaaa"]),
  "output in a terminal": plainText,
  "a text for a terminal": visibleText,
  "a text for a log": visible,
  "the width of a line": displayWidth,
  "a line that is cut": (text) => cutToWidth(text, 80),
  "a text that is wrapped": (text) => wrapText(text, 80),
  "output in the console": ansiSpans,
  "a text in the console": visibleLines,
  "a title in the console": visibleTitle,
  "the head of a request": (text) => parseRequestHead(Buffer.from(`GET / HTTP/1.1\r\nhost: x\r\nx: ${text}\r\n\r\n`)),
  "the head of a response": (text) => parseResponseHead(Buffer.from(`HTTP/1.1 200 ${text}\r\nx: ${text}\r\n\r\n`)),
  "a host": parseTargetHost,
  "a network rule": parseRule,
  "a secret rule": parseSecret,
  "an image reference": parseImageReference,
  "a model name": parseModelName,
  "a git host": parseGitPlace,
  "a trace": parseTraceparent,
  "a size": bytesFrom,
  "a duration": durationFrom,
  "a cursor": (text) => parseCursor(text, "things"),
  "a branch name": slugOf,
  "a requirement": earsForm,
  "an expression": expressionProblem,
  "a text with expressions": (text) => expressionsIn(text),
  "a command that permissions judge": (text) => permissionFor(`bash:${text}`, { own: { "bash:git push*": "ask" } }),
  "a glob": (text) => compileGlob(text)?.("a/b"),
  "a path that a glob matches": (text) => compileGlob("**/{a,b}/*a*b/**")?.(text),
  "a .gitmodules": (text) => parseSubmodules(`submodule.${text}.path\n${text}\0submodule.${text}.url\n${text}`),
  "a submodule address": (text) => submoduleAddress("https://example.com/a/b.git", `../${text}`),
  "a line of git's settings": hooksPathIn,
  "an address that may hold a password": (text) => withoutSecretOf(`https://me:secret@example.com/${text}`, text),
  "an index of packages": (text) => rewriteSimpleHtml(`<html>${text}`, page),
  "a link in an index of packages": (text) => rewriteSimpleHtml(`<html><a ${text}>${text}</a>`, page),
  "the integrity of a package": integrityDigest,
  "a list of versions in a header": (text) => names(text, '"a"', { weakly: true }),
  "a range in a header": (text) =>
    partOf({ ...conditionsOf(new Request("http://x/")), range: `bytes=${text}` }, { sizeBytes: 1, etag: "" }),
  "a cookie for a preview": (text) => rewrite.request({ ...requestHead, headers: [header("Cookie", text)] }, `/${text}`),
  "a cookie of a preview": (text) =>
    rewrite.response({ ...responseHead, headers: [header("Set-Cookie", text)] }, { host: "x", byHost: false }),
  "the body of a model call": (text) => parseBody(Buffer.from(JSON.stringify({ messages: [text] }))),
  "git's report of a push": (text) => readPushReport(Buffer.concat([pktLine(`unpack ${text.slice(0, 60_000)}`), FLUSH]), []),
  "the refs of a remote": (text) => readAdvertisedRefs(Buffer.from(text), "git-upload-pack"),
  "a remote to ship to": parseShipRemote,
  "an agent's name": parseAgentReference,
  "a runtime's name": parseOciRuntime,
  "a name in the audit log": (text) => [auditName(text), auditPath(text), auditOrigin(text)],
  "a hint for models": (text) => forModels(new CaissonError("invalid", "x", { hint: text })),
  "what a program inside reports": (text) => plainJson({ [text.slice(0, 1000)]: [text] }),
  "a result of an MCP tool": (text) => mcpResultText({ content: [{ type: "text", text }, { type: text }] }),
  "a value that a secret may be in": (text) => secrets.text(text),
  "a structure that a secret may be in": (text) => secrets.json({ [text]: [text] }),
  "an answer that a secret may be in": (text) => answers?.head({ ...responseHead, headers: [header("X", text)] }),
  "a requirement's phase": (text) => judgeOutput("requirements", text, {}),
  "a patch in the console": (text) => patchLines({ encoding: "utf8", text }),
};

describe("linear cost of foreign text", () => {
  test.each(Object.entries(parsers))("%s", async (_, read) => {
    await expectLinearCost(read);
  });
});
