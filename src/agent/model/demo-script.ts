import type { Script } from "./scripted-model.ts";

/** The model `scripted:demo`, for users without a key. It does a small piece of work in an empty workspace. */
export const demoScript: Script = {
  about: "a scripted model, not a real one",
  turns: [
    {
      think: "The workspace is empty. I'll write a small program and a test for it, and watch the test fail first.",
      say: "I'm a scripted model, not a real one. I'll write a small program with a test, watch it fail, and fix it.",
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
      say: "The discount is a percentage, but the code never divides by 100.",
      pauseMs: 40,
      calls: [
        { tool: "edit", arguments: { path: "price.sh", old: "$1 - $1 * $2", new: "$1 - $1 * $2 / 100" } },
        { tool: "bash", arguments: { command: "sh price-test.sh && sha256sum price.sh" } },
      ],
      expect: { news: ["not ok: got -18000"] },
    },
    {
      say: "The test passes now. See **Changes** for what I did; none of it has left the sandbox.",
      pauseMs: 40,
      expect: { news: ["ok: 10 % off 2000 is 1800"] },
    },
  ],
};
