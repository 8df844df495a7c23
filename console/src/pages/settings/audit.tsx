import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useStation } from "../../data/station.tsx";
import { Badge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import styles from "./settings.module.css";

/** The append-only log of all calls to the station. */
export default function Audit() {
  const station = useStation();
  const [action, setAction] = useState("");
  const [outcome, setOutcome] = useState("");
  const { data, error, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["audit", action, outcome],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      station.audit.list(
        {
          limit: 100,
          ...(action !== "" && { action }),
          ...(outcome !== "" && { outcome: outcome as "made" | "failed" }),
          ...(pageParam !== "" && { cursor: pageParam }),
        },
        { signal },
      ),
    getNextPageParam: (page) => page.next,
  });
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <>
      <div className={styles.line}>
        <Field
          label="Action"
          placeholder="runs.start, or runs for all"
          value={action}
          onChange={(event) => setAction(event.target.value.trim())}
        />
        <ChoiceField
          label="Outcome"
          value={outcome}
          choices={[
            { value: "", label: "any" },
            { value: "made", label: "made" },
            { value: "failed", label: "failed" },
          ]}
          onChoice={setOutcome}
        />
      </div>
      {error !== null && <Problem error={error} />}
      <Table
        label="Calls"
        columns={[
          { name: "Time" },
          { name: "Caller" },
          { name: "Action", onPhone: "title" },
          { name: "Subject" },
          { name: "Outcome", onPhone: "beside" },
        ]}
        rows={entries.map((entry) => ({
          key: String(entry.id),
          cells: [
            <Time key="at" at={entry.at} />,
            entry.token ?? entry.caller ?? entry.address ?? "unknown",
            <code key="action">{entry.action ?? "none"}</code>,
            Object.values(entry.subject).join(" "),
            <Badge key="outcome" tone={entry.outcome === "made" ? "good" : "bad"}>
              {entry.code ?? entry.outcome}
            </Badge>,
          ],
        }))}
      />
      {hasNextPage && (
        <div className={styles.line}>
          <Button onClick={() => void fetchNextPage()}>Older</Button>
        </div>
      )}
    </>
  );
}
