import { SendHorizontal } from "lucide-react";
import { useState } from "react";
import type { MessageMode } from "../../../../src/contract/run/run.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import styles from "./message-box.module.css";

const modes: readonly { mode: MessageMode; label: string; about: string }[] = [
  { mode: "steer", label: "Steer", about: "The agent reads it before its next step" },
  { mode: "queue", label: "Queue", about: "The agent reads it when it finishes its current work" },
  { mode: "interrupt", label: "Interrupt", about: "Interrupts what the agent is doing" },
];

/** A message for the agent: into an active run, or as the next turn of a finished one. */
export function MessageBox({ view, onSent }: { view: RunView; onSent(): void }) {
  const station = useStation();
  const [text, setText] = useState("");
  const [mode, setMode] = useState<MessageMode>("steer");
  const [isBusy, setBusy] = useState(false);
  const hasEnded = view.status === "ended";
  const canSend = text.trim() !== "" && !isBusy;
  const send = () => {
    if (!canSend) return;
    setBusy(true);
    sendWords(station, view, { text: text.trim(), mode })
      .then(() => {
        setText("");
        onSent();
        if (hasEnded) say("The run continues.");
      }, sayProblem)
      .finally(() => setBusy(false));
  };
  return (
    <form
      className={styles.box}
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        className={styles.text}
        rows={2}
        aria-label="Message to the agent"
        placeholder={hasEnded ? "Continue with another message…" : "Tell the agent something…"}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || (!event.ctrlKey && !event.metaKey)) return;
          event.preventDefault();
          send();
        }}
      />
      <div className={styles.foot}>
        {!hasEnded && (
          <fieldset className={styles.modes}>
            <legend className="visually-hidden">When the agent reads it</legend>
            {modes.map((each) => (
              <Button key={each.mode} look="plain" isOn={mode === each.mode} title={each.about} onClick={() => setMode(each.mode)}>
                {each.label}
              </Button>
            ))}
          </fieldset>
        )}
        <span className={styles.hint}>Ctrl Enter to send</span>
        <Button look="main" type="submit" icon={<SendHorizontal />} disabled={!canSend}>
          {hasEnded ? "Continue" : "Send"}
        </Button>
      </div>
    </form>
  );
}

export async function sendWords(
  station: ReturnType<typeof useStation>,
  view: Pick<RunView, "run" | "status">,
  { text, mode }: { text: string; mode: MessageMode },
): Promise<void> {
  if (view.status === "ended") await station.runs.continue(view.run, { text, attended: true, detached: true });
  else await station.runs.send(view.run, { text, mode });
}
