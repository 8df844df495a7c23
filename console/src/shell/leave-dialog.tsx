import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { leave, stay, useLeaving } from "../parts/unsaved.ts";

/** Asks before unsaved text is lost. */
export function LeaveDialog() {
  const leaving = useLeaving();
  if (leaving === null) return null;
  return (
    <Dialog
      title="Leave without saving?"
      onClose={stay}
      actions={
        <>
          <Button onClick={stay} data-first-focus="">
            Stay
          </Button>
          <Button look="danger" onClick={leave}>
            Leave
          </Button>
        </>
      }
    >
      {leaving.texts.map((text) => (
        <p key={text}>{text}</p>
      ))}
    </Dialog>
  );
}
