import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Field } from "../../parts/field.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import styles from "./settings.module.css";

export default function Secrets() {
  const station = useStation();
  const queries = useQueryClient();
  const { data, error } = useQuery({ queryKey: ["secrets"], queryFn: ({ signal }) => station.secrets.list({ signal }) });
  const renew = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  const remove = async (name: string) => {
    await station.secrets.remove(name).then(renew, sayProblem);
  };
  return (
    <>
      <p className={styles.about}>
        Values cannot be read back. A sandbox sees only a placeholder with the secret's name; the station inserts the value into requests to
        the secret's hosts.
      </p>
      <NewSecret onSet={renew} />
      {error !== null && <Problem error={error} />}
      {data?.length === 0 && <Empty title="No secrets yet">Runs and sandboxes can use the secrets that you set here.</Empty>}
      {data !== undefined && data.length > 0 && (
        <Table
          label="Secrets"
          columns={[{ name: "Name", onPhone: "title" }, { name: "Hosts" }, { name: "Owner" }, { name: "Updated" }]}
          rows={data.map((secret) => ({
            key: `${secret.owner} ${secret.name}`,
            cells: [<code key="name">{secret.name}</code>, secret.hosts.join(", "), secret.owner, <Time key="set" at={secret.updatedAt} />],
            actions: (
              <Button look="plain" aria-label={`Remove ${secret.name}`} onClick={() => void remove(secret.name)}>
                Remove
              </Button>
            ),
          }))}
        />
      )}
    </>
  );
}

function NewSecret({ onSet }: { onSet(): Promise<unknown> }) {
  const station = useStation();
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [hosts, setHosts] = useState("");
  const set = async (event: FormEvent) => {
    event.preventDefault();
    const list = hosts.split(/[\s,]+/).filter((host) => host !== "");
    try {
      await station.secrets.set(name, { value, hosts: list });
      setValue("");
      say(`${name} is set.`);
      await onSet();
    } catch (error) {
      sayProblem(error);
    }
  };
  return (
    <form className={styles.line} onSubmit={set}>
      <Field label="Name" value={name} onChange={(event) => setName(event.target.value)} placeholder="GITHUB_TOKEN" required />
      <Field label="Value" type="password" autoComplete="off" value={value} onChange={(event) => setValue(event.target.value)} required />
      <Field label="Hosts" value={hosts} onChange={(event) => setHosts(event.target.value)} placeholder="api.github.com" required />
      <Button look="main" type="submit">
        Set
      </Button>
    </form>
  );
}
