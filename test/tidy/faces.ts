import { dirname, join, normalize } from "node:path";
import { importsOf, isTest, type SourceFile, type Violation } from "./rules.ts";

/** Files that say what the station can do, and nothing of how. */
const isInterface = (path: string) => /^src\/station\/(station|[a-z]+\/verbs|sandboxes\/(held-sandbox|tools))\.ts$/.test(path);

/** What a file of a face imports past the station's interface. */
function beyondInterface(file: SourceFile): string[] {
  return importsOf(file)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => normalize(join(dirname(file.path), specifier)))
    .filter((target) => !/^src\/(contract|lib)\//.test(target) && faceOf(target) !== faceOf(file.path) && !isInterface(target));
}

const faceOf = (path: string) => /^src\/(cli|api|client)\//.exec(path)?.[1] ?? null;
const isFace = ({ path }: SourceFile) => faceOf(path) !== null && !isTest(path);

/**
 * A face parses, calls and prints: it knows the contract and the station's interface, and has the rest handed to it.
 */
export function facesKnowTheInterface(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(isFace)
    .flatMap((file) => beyondInterface(file).map((target) => ({ path: file.path, what: `a face may not import ${target}` })));
}

/** The interface is types alone: who imports it loads nothing, and a client can implement it without our parts. */
export function interfaceIsTypes(files: readonly SourceFile[]): Violation[] {
  return files
    .filter((file) => isInterface(file.path))
    .flatMap((file) => {
      const code = file.text
        .split("\n")
        .filter((line) => /^(import|export) (?!type\b|interface\b)|^(const|let|function|class)\b/.test(line));
      return code.map((line) => ({ path: file.path, what: `the station's interface has code: ${line}` }));
    });
}
