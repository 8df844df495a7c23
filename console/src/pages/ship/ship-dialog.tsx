import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { CaissonError } from "../../../../src/contract/error.ts";
import { BranchKind } from "../../../../src/contract/ship.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { useStation } from "../../station/station.tsx";
import { lookAtWorkAgain } from "../../station/work-queries.ts";
import styles from "./ship.module.css";

/** The station's hints are for the command line; here there are fields. */
function inThisForm(error: unknown): unknown {
  if (!(error instanceof CaissonError) || error.details?.tests === undefined) return error;
  const { command, tests } = error.details;
  const hint =
    tests === "hidden"
      ? `If the tests passed, enter “${String(command)}” as the test command above.`
      : "Send the run a message to run the tests, or say above why it is shipped without.";
  return new CaissonError(error.code, error.message, { hint, cause: error });
}

/** Asks where changes go, and sends them on their way: branch, push, pull request. */
export function ShipDialog({ of, title, onClose }: { of: string; title: string; onClose(): void }) {
  const { ships } = useStation();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [draft, setDraft] = useState({
    title: title.split("\n", 1)[0]?.slice(0, 200) ?? "",
    to: "",
    into: "",
    ticket: "",
    tests: "",
    withoutTests: "",
  });
  const [kind, setKind] = useState<BranchKind>("feature");
  const [merge, setMerge] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const field = (name: keyof typeof draft) => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }),
  });
  const send = async () => {
    setBusy(true);
    setError(null);
    const given = Object.fromEntries(Object.entries(draft).filter(([, value]) => value.trim() !== ""));
    try {
      const { id } = await ships.start({ of, ...(kind !== "feature" && { kind }), ...(merge && { merge }), ...given });
      lookAtWorkAgain(queries);
      navigate(`/ships/${id}`);
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Ship the changes"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="main" disabled={isBusy} onClick={() => void send()}>
            {isBusy ? "One moment…" : "Ship"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <Field label="Title" {...field("title")} data-first-focus="" />
        <Field
          label="Repository"
          placeholder="the one that the work began from"
          hint="https://…, or the path of a bare one at the station"
          {...field("to")}
        />
        <div className={styles.pair}>
          <Field label="Into" placeholder="its branch, or the default" {...field("into")} />
          <Field label="Ticket" placeholder="optional" {...field("ticket")} />
        </div>
        <ChoiceField
          label="Kind"
          choices={BranchKind.options.map((value) => ({ value, label: value }))}
          value={kind}
          onChoice={(value) => setKind(value as BranchKind)}
        />
        <Field
          label="Test command"
          placeholder="found by itself"
          hint="A command of the run whose exit code counts as that of the tests."
          {...field("tests")}
        />
        <Field
          label="Without tests, because"
          placeholder="empty: only if its tests ran well"
          hint="What is shipped has to have been tested, or to say why not."
          {...field("withoutTests")}
        />
        <label className={styles.check}>
          <input type="checkbox" checked={merge} onChange={(event) => setMerge(event.target.checked)} /> Merge it as soon as it can be,
          without asking again
        </label>
        {error !== null && <Problem error={inThisForm(error)} />}
      </div>
    </Dialog>
  );
}
