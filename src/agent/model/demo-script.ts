import type { Script } from "./scripted-model.ts";

/** The model `scripted:demo`, for whoever has no key yet: it does a small piece of work in an empty workspace. */
export const demoScript: Script = {
  about: "a scripted model, not a real one",
  turns: [
    {
      think: "The workspace is empty. I write a small program with a test first, and see the test fail.",
      say: "I am a scripted model, not a real one. I write a small program with a test, see it fail, and mend it.",
      pauseMs: 40,
      calls: [
        {
          tool: "write",
          arguments: {
            path: "price.sh",
            content: "#!/bin/sh\n# price.sh CENTS PERCENT: the price after a discount.\necho $(($1 - $1 * $2))\n",
          },
        },
        {
          tool: "write",
          arguments: {
            path: "price-test.sh",
            content:
              '#!/bin/sh\ngot=$(sh price.sh 2000 10)\n[ "$got" = 1800 ] && echo "ok: 10 % off 2000 is 1800" || { echo "not ok: got $got, wanted 1800"; exit 1; }\n',
          },
        },
        { tool: "bash", arguments: { command: "sh price-test.sh" } },
      ],
    },
    {
      say: "The discount is a percentage, and nobody divides by 100.",
      pauseMs: 40,
      calls: [
        { tool: "edit", arguments: { path: "price.sh", old: "$1 - $1 * $2", new: "$1 - $1 * $2 / 100" } },
        { tool: "bash", arguments: { command: "sh price-test.sh && sha256sum price.sh" } },
      ],
      expect: { news: ["not ok: got -18000"] },
    },
    {
      say: "The test passes now. Look at **Changes** for what I did; nothing of it has left the sandbox.",
      pauseMs: 40,
      expect: { news: ["ok: 10 % off 2000 is 1800"] },
    },
  ],
};
