import { Empty } from '../ui/Empty';

export default function SettingsPage() {
  return <Empty title="Compare settings: not here yet" />;
}
