import { type ComponentType, use } from 'react';

type Load<Props> = () => Promise<{ default: ComponentType<Props> }>;

/** NotLoaded says that the code of a page did not arrive. Once forgotten, looking at the page fetches it again. */
export class NotLoaded extends Error {
  override name = 'NotLoaded';

  constructor(
    readonly forget: () => void,
    cause: unknown,
  ) {
    super('The server did not send its code.', { cause });
  }
}

/** fetched is a page, or a part of one, whose code is loaded when it is first looked at. React's lazy would remember a failure for good. */
export function fetched<Props extends object>(load: Load<Props>): ComponentType<Props> {
  let coming: ReturnType<Load<Props>> | undefined;
  return function Fetched(props: Props) {
    coming ??= load().catch((cause: unknown) => {
      throw new NotLoaded(() => (coming = undefined), cause);
    });
    const { default: Page } = use(coming);
    return <Page {...props} />;
  };
}
