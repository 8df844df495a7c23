import { SendHorizontal } from "lucide-react";
import { useState } from "react";
import type { MessageMode } from "../../../../src/contract/run.ts";
import type { RunView } from "../../../../src/contract/run-verbs.ts";
import { Button } from "../../parts/button.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import styles from "./message-box.module.css";

const modes: readonly { mode: MessageMode; label: string; about: string }[] = [
  { mode: "steer", label: "Steer", about: "Read before its next step" },
  { mode: "queue", label: "Queue", about: "Read when it has finished what it is doing" },
  { mode: "interrupt", label: "Interrupt", about: "What it does now is broken off for it" },
];

/** Words for the agent: into the run that goes on, or as the next turn of one that has ended. */
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
        if (hasEnded) say("The run goes on");
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
            <legend className="visually-hidden">When it is read</legend>
            {modes.map((each) => (
              <Button key={each.mode} look="plain" isOn={mode === each.mode} title={each.about} onClick={() => setMode(each.mode)}>
                {each.label}
              </Button>
            ))}
          </fieldset>
        )}
        <span className={styles.hint}>Ctrl Enter sends</span>
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
