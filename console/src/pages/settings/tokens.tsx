import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { NewToken, Scope } from "../../../../src/contract/token/token-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { ChoiceField, Field } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { sayProblem } from "../../parts/toasts.tsx";
import styles from "./settings.module.css";

export default function Tokens() {
  const station = useStation();
  const queries = useQueryClient();
  const [newToken, setNewToken] = useState<NewToken | null>(null);
  const tokens = useQuery({ queryKey: ["tokens"], queryFn: ({ signal }) => station.tokens.list({ signal }) });
  const renew = () => queries.invalidateQueries({ queryKey: ["tokens"] });
  const revoke = useMutation({ mutationFn: (id: string) => station.tokens.revoke(id), onSuccess: renew, onError: sayProblem });
  const rotate = useMutation({
    mutationFn: (id: string) => station.tokens.rotate(id),
    onSuccess: (token) => {
      setNewToken(token);
      return renew();
    },
    onError: sayProblem,
  });
  return (
    <>
      <p className={styles.about}>
        A token lets a program or a browser call this station. It is shown once; the station stores only its hash.
      </p>
      <NewTokenForm
        onMade={(token) => {
          setNewToken(token);
          void renew();
        }}
      />
      {newToken !== null && (
        <div className={styles.once} role="status">
          <strong>{newToken.name}: copy it now, it will not be shown again</strong>
          <div className={styles.line}>
            <code>{newToken.token}</code>
            <Copy text={newToken.token} what="token" />
          </div>
        </div>
      )}
      {tokens.error !== null && <Problem error={tokens.error} />}
      {tokens.data !== undefined && (
        <Table
          label="Tokens"
          columns={[
            { name: "Name", onPhone: "title" },
            { name: "Scope", onPhone: "beside" },
            { name: "Owner" },
            { name: "Created" },
            { name: "Expires" },
          ]}
          rows={tokens.data.map((token) => ({
            key: token.id,
            cells: [
              token.name,
              token.scope,
              token.owner,
              <Time key="made" at={token.createdAt} />,
              token.expiresAt === null ? "never" : new Date(token.expiresAt).toLocaleString(),
            ],
            actions: (
              <>
                <Button look="plain" onClick={() => rotate.mutate(token.id)}>
                  Rotate
                </Button>
                <Button look="plain" onClick={() => revoke.mutate(token.id)}>
                  Revoke
                </Button>
              </>
            ),
          }))}
        />
      )}
    </>
  );
}

function NewTokenForm({ onMade }: { onMade(token: NewToken): void }) {
  const station = useStation();
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [scope, setScope] = useState<Scope>("run");
  const make = async (event: FormEvent) => {
    event.preventDefault();
    try {
      onMade(await station.tokens.create({ name, scope, ...(owner.trim() !== "" && { owner: owner.trim() }) }));
      setName("");
    } catch (error) {
      sayProblem(error);
    }
  };
  return (
    <form className={styles.line} onSubmit={make}>
      <Field label="Name" value={name} onChange={(event) => setName(event.target.value)} placeholder="laptop" required />
      <ChoiceField
        label="Scope"
        value={scope}
        choices={[
          { value: "read", label: "read" },
          { value: "run", label: "run" },
          { value: "admin", label: "admin" },
        ]}
        onChoice={(chosen) => setScope(chosen as Scope)}
      />
      <Field label="Owner" value={owner} onChange={(event) => setOwner(event.target.value)} placeholder="local" />
      <Button look="main" type="submit">
        Create
      </Button>
    </form>
  );
}
