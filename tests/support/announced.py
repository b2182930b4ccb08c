"""What delivers announcements in a worker whose other parts a test plays."""

from fleet.adapters.redis.announcements.deliveries import Deliveries
from fleet.roles.worker.announcements.delivery import AnnouncementDelivery
from fleet.roles.worker.announcements.kept import KeptTexts
from fleet.roles.worker.announcements.pauses import AnswerPauses
from fleet.roles.worker.announcements.receipts import ClipReceipts
from tests.support.worker_stage import WorkerStage


def announcements(
    stage: WorkerStage,
    receipts: ClipReceipts | None = None,
    pauses: AnswerPauses | None = None,
    kept: KeptTexts | None = None,
) -> AnnouncementDelivery:
    """Return it for the devices of a stage; the receipts are read by whoever passes them."""
    unread = receipts or ClipReceipts(Deliveries(stage.resources.store), dict)
    return AnnouncementDelivery(stage.resources, stage.directory, unread, pauses or AnswerPauses(), kept or KeptTexts())
