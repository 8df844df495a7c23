import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import { BranchKind } from "../../../../src/contract/ship/ship.ts";
import { useStation } from "../../data/station.tsx";
import { lookAtWorkAgain } from "../../data/work-queries.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import styles from "./ship.module.css";

/** Replaces the station's hints, which name command-line options, with hints about this form. */
function inThisForm(error: unknown): unknown {
  if (!(error instanceof CaissonError) || error.details?.tests === undefined) return error;
  const { command, tests } = error.details;
  const hint =
    tests === "hidden"
      ? `If the tests passed, enter “${String(command)}” as the test command above.`
      : "Ask the run to run its tests, or say above why you ship without them.";
  return new CaissonError(error.code, error.message, { hint, cause: error });
}

/** Asks where the changes go, then ships them: branch, push, pull request. */
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
    const fields = Object.fromEntries(Object.entries(draft).filter(([, value]) => value.trim() !== ""));
    try {
      const { id } = await ships.start({ of, ...(kind !== "feature" && { kind }), ...(merge && { merge }), ...fields });
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
          placeholder="the one that the work started from"
          hint="https://…, or the path of a bare repository on the station's machine"
          {...field("to")}
        />
        <div className={styles.pair}>
          <Field label="Into" placeholder="the original branch, or the default" {...field("into")} />
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
          placeholder="detected automatically"
          hint="A command from the run whose exit code is the result of the tests."
          {...field("tests")}
        />
        <Field
          label="Reason to ship without tests"
          placeholder="empty: only if the tests passed"
          hint="A ship needs passed tests, or a reason to go without."
          {...field("withoutTests")}
        />
        <label className={styles.check}>
          <input type="checkbox" checked={merge} onChange={(event) => setMerge(event.target.checked)} /> Merge it as soon as possible,
          without asking again
        </label>
        {error !== null && <Problem error={inThisForm(error)} />}
      </div>
    </Dialog>
  );
}
