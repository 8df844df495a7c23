import { describe, expect, test } from "vitest";
import type { Instruction } from "./instruction.ts";
import { parseDockerfile } from "./parse-dockerfile.ts";

const instructionsOf = (text: string): readonly Instruction[] => parseDockerfile(`FROM scratch\n${text}`).stages[0]?.instructions ?? [];
const only = (text: string): Instruction => {
  const [first, ...more] = instructionsOf(text);
  expect(more).toEqual([]);
  return first as Instruction;
};

describe("lines", () => {
  test("continue over comments and empty lines", () => {
    expect(only("RUN a \\\n# a comment\n\n  b \\  \n  c\n")).toMatchObject({ kind: "run", command: { form: "shell", text: "a   b   c" } });
  });

  test("continue with the character of the escape directive", () => {
    const { escapeMark, stages } = parseDockerfile("# escape=`\nFROM scratch\nRUN a `\n b\\\nRUN c");
    expect(escapeMark).toBe("`");
    expect(stages[0]?.instructions).toMatchObject([{ command: { text: "a  b\\" } }, { command: { text: "c" } }]);
  });

  test("directives count only before anything else", () => {
    expect(parseDockerfile("# a comment\n# escape=`\nFROM scratch").escapeMark).toBe("\\");
    expect(() => parseDockerfile("# escape=x\nFROM scratch")).toThrow("must be \\ or `");
  });

  test("may end with a carriage return, and begin with a byte order mark", () => {
    expect(parseDockerfile("\uFEFFFROM scratch\r\nRUN a \\\r\n  b\r\n").stages[0]?.instructions).toMatchObject([
      { command: { text: "a   b" } },
    ]);
  });
});

describe("heredocs", () => {
  test("are the whole command of a RUN", () => {
    expect(only("RUN <<EOF\none\ntwo\nEOF\n")).toMatchObject({
      command: { form: "shell", text: "one\ntwo\n" },
      heredocs: [{ name: "EOF" }],
    });
  });

  test("go to the shell as part of a longer command", () => {
    expect(only("RUN cat <<-A <<'B' > /x\n\tone\n\tA\ntwo\nB\n")).toMatchObject({
      heredocs: [],
      command: { text: "cat <<-A <<'B' > /x\n\tone\n\tA\ntwo\nB\n" },
    });
  });

  test("are files of a COPY, with tabs removed and variables as their name says", () => {
    expect(only('COPY <<-A <<"B" file /to/\n\ta $X\nA\nb $X\nB\n')).toMatchObject({
      kind: "copy",
      sources: ["file"],
      target: "/to/",
      heredocs: [
        { name: "A", content: "a $X\n", expands: true },
        { name: "B", content: "b $X\n", expands: false },
      ],
    });
  });

  test("do not begin in quotes, after an escape or as a here-string", () => {
    expect(instructionsOf("RUN echo '<<A' \\<<B <<<C\nRUN b")).toHaveLength(2);
    expect(() => parseDockerfile("FROM scratch\nRUN cat <<EOF\nnever")).toThrow("line 2: the heredoc EOF has no end");
  });
});

describe("instructions", () => {
  test("take a JSON form or a shell form", () => {
    expect(only('RUN ["a", "b c"]')).toMatchObject({ command: { form: "exec", argv: ["a", "b c"] } });
    expect(only("RUN [ -e /x ] && y")).toMatchObject({ command: { form: "shell", text: "[ -e /x ] && y" } });
    expect(only('COPY --chown=1:2 --chmod=644 ["a b", "c/"]')).toMatchObject({
      sources: ["a b"],
      target: "c/",
      chown: "1:2",
      chmod: "644",
    });
    expect(only('SHELL ["/bin/bash", "-c"]')).toMatchObject({ kind: "shell", argv: ["/bin/bash", "-c"] });
  });

  test("split pairs outside of quotes, or take the older form", () => {
    expect(only(`ENV A="x y" B=z\\ w C='$D'`)).toMatchObject({
      pairs: [
        ["A", '"x y"'],
        ["B", "z\\ w"],
        ["C", "'$D'"],
      ],
    });
    expect(only("ENV A x y")).toMatchObject({ pairs: [["A", "x y"]] });
    expect(only("ARG A B=1")).toMatchObject({
      pairs: [
        ["A", null],
        ["B", "1"],
      ],
    });
  });

  test("are named if they have no effect", () => {
    expect(parseDockerfile("FROM scratch\nHEALTHCHECK CMD x\nONBUILD RUN y\nMAINTAINER z").notices).toEqual([
      "line 2: HEALTHCHECK has no effect",
      "line 3: ONBUILD has no effect",
      "line 4: MAINTAINER has no effect",
    ]);
  });

  test.each([
    ["RUN --security=insecure x", "--security is not supported"],
    ["COPY --parents a b", "--parents is not supported"],
    ["FRO x", "FRO is not an instruction"],
    ["__proto__ x", "__PROTO__ is not an instruction"],
    ["COPY a", "at least one source and a target"],
    ["ARG 1=2", "is not the name of an argument"],
    ["ENV =x", "is not NAME=VALUE"],
    ["RUN", "RUN needs an argument"],
  ])("%s is refused by name", (text, message) => {
    expect(() => parseDockerfile(`FROM scratch\n${text}`)).toThrow(message);
  });
});

describe("stages", () => {
  test("have names and platforms", () => {
    const { stages, globals } = parseDockerfile("ARG V=1\nFROM --platform=$P a:$V AS Build\nFROM build");
    expect(globals).toHaveLength(1);
    expect(stages.map(({ from }) => [from.image, from.platform, from.name])).toEqual([
      ["a:$V", "$P", "build"],
      ["build", null, null],
    ]);
  });

  test.each([
    ["RUN x", "RUN stands before the first FROM"],
    ["# nothing", "the file has no FROM"],
    ["FROM a AS 1x", "cannot be the name of a stage"],
    ["FROM a AS x\nFROM b AS X", "two stages have the name x"],
    ["FROM a b", "FROM takes an image"],
  ])("%s is refused", (text, message) => {
    expect(() => parseDockerfile(text)).toThrow(message);
  });
});

describe("bounds", () => {
  test.each([
    ["bytes", `FROM scratch\n${"#".repeat(1024 * 1024)}`],
    ["lines", `FROM scratch\n${"\n".repeat(20_000)}`],
    ["instructions", `FROM scratch\n${"RUN x\n".repeat(1_001)}`],
    ["stages", "FROM scratch\n".repeat(65)],
  ])("limit the %s of a file", (_what, text) => {
    expect(() => parseDockerfile(text)).toThrow(expect.objectContaining({ code: "too_large" }));
  });

  test("a file with NUL is refused", () => {
    expect(() => parseDockerfile("FROM scratch\nRUN a\0b")).toThrow("the file contains NUL");
  });
});
