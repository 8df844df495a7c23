import type { LocalAudit } from "../station/audit/local-audit.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { SecretVerbs } from "../station/secrets/verbs.ts";
import type { LocalTokens } from "../station/tokens/local-tokens.ts";
import { lazyVerbs } from "./lazy-verbs.ts";

/** Who may use the station, what they asked for, and what they keep in it. */

export function composeAudit(local: () => Promise<LocalStation>): LocalAudit {
  return lazyVerbs<LocalAudit>({ list: "answer", made: "answer", failed: "answer", forgetOld: "answer" }, async () => {
    const { createLocalAudit } = await import("../station/audit/local-audit.ts");
    return createLocalAudit({ log: (await local()).log });
  });
}

export function composeTokens(stateDir: string): LocalTokens {
  return lazyVerbs<LocalTokens>(
    { create: "answer", list: "answer", revoke: "answer", rotate: "answer", authenticate: "answer" },
    async () => {
      const { createLocalTokens } = await import("../station/tokens/local-tokens.ts");
      return createLocalTokens({ stateDir });
    },
  );
}

export function composeSecrets(stateDir: string): SecretVerbs {
  return lazyVerbs<SecretVerbs>({ set: "answer", list: "answer", remove: "answer" }, async () => {
    const { createLocalSecrets } = await import("../station/secrets/local-secrets.ts");
    return createLocalSecrets({ stateDir });
  });
}
