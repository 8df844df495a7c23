import { useQueryClient } from "@tanstack/react-query";
import { Camera, GitFork, Pause, Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { keys } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useIsPhone } from "../../parts/use-is-phone.ts";
import { RemoveSandboxes } from "../sandboxes/remove-sandboxes.tsx";
import { MakeSnapshot } from "./make-snapshot.tsx";

/** The actions on a whole sandbox. */
export function SandboxActions({ sandbox }: { sandbox: SandboxInfo }) {
  const { id, state } = sandbox;
  const station = useStation();
  const queries = useQueryClient();
  const isPhone = useIsPhone();
  const [, navigate] = useLocation();
  const [busy, setBusy] = useState<string | null>(null);
  const [dialog, setDialog] = useState<"snapshot" | "remove" | null>(null);
  const act = async (name: string, deed: () => Promise<void>) => {
    setBusy(name);
    try {
      await deed();
      await queries.invalidateQueries({ queryKey: keys.sandbox(id) });
      void queries.invalidateQueries({ queryKey: keys.sandboxes });
    } catch (error) {
      sayProblem(error);
    }
    setBusy(null);
  };
  const fork = async () => {
    const forkedSandbox = await station.sandboxes.fork(id);
    say("Forked. This is the new sandbox.");
    navigate(`/sandboxes/${forkedSandbox.id}`);
  };
  const actions = [
    ...(state === "paused"
      ? [{ name: "Resume", icon: <Play />, deed: () => act("Resume", async () => void (await station.sandboxes.resume(id))) }]
      : []),
    ...(state === "running"
      ? [{ name: "Pause", icon: <Pause />, deed: () => act("Pause", async () => void (await station.sandboxes.pause(id))) }]
      : []),
    { name: "Fork", icon: <GitFork />, deed: () => act("Fork", fork) },
    { name: "Snapshot", icon: <Camera />, deed: async () => setDialog("snapshot") },
  ];
  return (
    <>
      {actions.map(({ name, icon, deed }) => (
        <Button key={name} icon={icon} disabled={busy !== null} onClick={() => void deed()} {...(isPhone ? { label: name } : {})}>
          {isPhone ? undefined : busy === name ? `${name}…` : name}
        </Button>
      ))}
      <Button look="danger" label="Remove" icon={<Trash2 />} onClick={() => setDialog("remove")} />
      {dialog === "snapshot" && <MakeSnapshot sandbox={id} onClose={() => setDialog(null)} />}
      {dialog === "remove" && (
        <RemoveSandboxes
          sandboxes={[sandbox]}
          onClose={() => setDialog(null)}
          onRemoved={() => {
            void queries.invalidateQueries({ queryKey: keys.sandboxes });
            navigate("/sandboxes");
          }}
        />
      )}
    </>
  );
}
