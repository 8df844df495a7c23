import { useQuery } from "@tanstack/react-query";
import { useStation } from "../../data/station.tsx";
import { Badge } from "../../parts/badge.tsx";
import { Card } from "../../parts/card.tsx";
import { Problem } from "../../parts/problem.tsx";
import styles from "./settings.module.css";

/** Lists the agents that runs can start with, and the faults of unusable ones. */
export default function Agents() {
  const station = useStation();
  const { data, error } = useQuery({ queryKey: ["agents"], queryFn: ({ signal }) => station.agents.list({ signal }) });
  return (
    <>
      {error !== null && <Problem error={error} />}
      {data?.map((agent) => (
        <Card
          key={agent.path}
          title={agent.name}
          badges={
            <>
              <Badge tone={agent.fault === null ? "good" : "bad"}>{agent.fault === null ? agent.origin : "cannot be used"}</Badge>
              {agent.hidden && <Badge tone="idle">only by path</Badge>}
            </>
          }
        >
          <p>{agent.description}</p>
          {agent.fault !== null && (
            <p role="alert">
              {agent.fault.message}. {agent.fault.hint}
            </p>
          )}
          <p className={styles.dim}>
            <code>{agent.path}</code>
          </p>
        </Card>
      ))}
    </>
  );
}
