import { isTest, relativeImportsOf, type SourceFile, type Violation } from "./rules.ts";

/** Returns whether a file declares what the station can do, without an implementation. */
const isInterface = (path: string) => path.startsWith("src/verbs/");

/** Returns the imports of a face's file that bypass the station's interface. */
function beyondInterface(file: SourceFile): string[] {
  return relativeImportsOf(file).filter(
    (target) => !/^src\/(contract|lib)\//.test(target) && faceOf(target) !== faceOf(file.path) && !isInterface(target),
  );
}

const faceOf = (path: string) => /^src\/(cli|api|client)\//.exec(path)?.[1] ?? null;
const isFace = ({ path }: SourceFile) => faceOf(path) !== null && !isTest(path);

/**
 * A face parses, calls and prints. It imports the contract and the station's interface, and receives everything else.
 */
export function facesKnowTheInterface(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(isFace)
    .flatMap((file) => beyondInterface(file).map((target) => ({ path: file.path, what: `a face may not import ${target}` })));
}

/**
 * The interface only declares. It imports only types from the sandbox, so a client can implement it without our parts.
 */
export function interfaceDeclares(files: readonly SourceFile[]): Violation[] {
  return files
    .filter((file) => isInterface(file.path))
    .flatMap((file) => {
      const values = [...file.text.matchAll(/^import (?!type\b)[^"]*"(\.\.\/(?!contract\/|lib\/)[^"]*|node:[^"]*)"/gm)];
      return values.map(([, target]) => ({ path: file.path, what: `the station's interface imports code from ${target}` }));
    });
}
