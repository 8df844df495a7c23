import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { type FormEvent, useState } from "react";
import type { NetworkPolicy } from "../../../../src/contract/network/network.ts";
import { useStation } from "../../data/station.tsx";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./network.module.css";
import { NetworkLog } from "./network-log.tsx";
import type { SandboxPart } from "./use-sandbox.ts";

type Rule = Extract<NetworkPolicy, { mode: "allow" }>["rules"][number];
const usualPorts = "80,443";

/** The network policy of a sandbox, and its connections. */
export default function Network({ sandbox }: SandboxPart) {
  const station = useStation();
  const queries = useQueryClient();
  const queryKey = ["network", sandbox.id];
  const { data, error, refetch } = useQuery({ queryKey, queryFn: ({ signal }) => station.networks.show(sandbox.id, { signal }) });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const change = async (how: "allow" | "deny", rule: { host: string; ports?: number[] }, message: string) => {
    await station.networks.change(sandbox.id, { how, policy: { mode: "allow", rules: [rule] } });
    await queries.invalidateQueries({ queryKey });
    say(message);
  };
  const allow = (host: string, ports?: number[]) =>
    change("allow", { host, ...(ports && { ports }) }, `${host} is now allowed.`).catch(sayProblem);
  const { policy, secrets, gateway } = data;
  const rules = policy.mode === "none" ? [] : policy.rules;
  return (
    <div className={styles.network}>
      <section className={styles.policy}>
        <h2>Network policy</h2>
        <div className={styles.mode}>{modeText(policy)}</div>
        <ul className={styles.rules}>
          {rules.map((rule) => (
            <li key={JSON.stringify(rule)} className={styles.rule}>
              <code>{ruleText(rule)}</code>
              <Button
                look="plain"
                label={`Stop allowing ${rule.host}`}
                icon={<X />}
                onClick={() => void change("deny", rule, `${rule.host} is no longer allowed.`).catch(sayProblem)}
              />
            </li>
          ))}
        </ul>
        {policy.mode !== "none" && policy.registries.length > 0 && <p>Package registries: {policy.registries.join(", ")}</p>}
        {policy.mode !== "open" && <AllowHost onHost={allow} />}
        {secrets.length > 0 && (
          <>
            <h2>Secrets</h2>
            <ul className={styles.rules}>
              {secrets.map(({ name, hosts, revoked }) => (
                <li key={name} className={styles.rule}>
                  <span>
                    <code>{name}</code> for {hosts.join(", ")}
                  </span>
                  {revoked ? (
                    <Badge tone="idle">revoked</Badge>
                  ) : (
                    <Button
                      look="plain"
                      onClick={() =>
                        void station.networks
                          .revoke(sandbox.id, { secret: name })
                          .then(() => queries.invalidateQueries({ queryKey }))
                          .catch(sayProblem)
                      }
                    >
                      Revoke
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
        {gateway !== null && <p>Models available inside: {gateway.models?.join(", ") ?? "all models of this station"}.</p>}
      </section>
      <NetworkLog sandbox={sandbox.id} policy={policy} onAllow={allow} />
    </div>
  );
}

function modeText(policy: NetworkPolicy): string {
  if (policy.mode === "none") return "No network.";
  if (policy.mode === "open") return policy.rules.length === 0 ? "Every public address." : "Every public address, and:";
  return policy.rules.length === 0 && policy.registries.length === 0 ? "No hosts yet." : "Only these:";
}

function ruleText({ host, ports, methods, paths }: Rule): string {
  const at = ports.join(",") === usualPorts ? "" : `:${ports.join(",")}`;
  return visibleText([`${host}${at}`, methods?.join(","), paths?.join(" ")].filter(Boolean).join(" "));
}

function AllowHost({ onHost }: { onHost(host: string): Promise<void> }) {
  const [host, setHost] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (host.trim() !== "") void onHost(host.trim()).then(() => setHost(""));
  };
  return (
    <form className={styles.add} onSubmit={submit}>
      <input
        aria-label="Host to allow"
        placeholder="example.com or *.example.com"
        value={host}
        spellCheck={false}
        onChange={(event) => setHost(event.target.value)}
      />
      <Button type="submit" icon={<Plus />} disabled={host.trim() === ""}>
        Allow
      </Button>
    </form>
  );
}
