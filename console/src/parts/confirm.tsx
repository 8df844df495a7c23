import { type ReactNode, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { sayProblem } from "./toasts.tsx";

/** Asks before an action that cannot be undone. Closes when it is done; stays open and shows a toast if it fails. */
export function Confirm({
  title,
  action,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  /** The text of the button: a verb. */
  action: string;
  onConfirm(): Promise<void>;
  onClose(): void;
  children?: ReactNode;
}) {
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      sayProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" disabled={isBusy} onClick={() => void confirm()} data-first-focus="">
            {isBusy ? "One moment…" : action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
